"""
### Purge sensitive data

Takes records out of the lake, with all that was made from them, and proves it. **Nothing personal belongs into this
form**: name a selection (`headwater purge select` makes one from a predicate, a key or ids), or the ids of records.

| task | does |
|---|---|
| `plan` | finds all that was made from the records, and what becomes of each version; changes nothing |
| `approve` | waits for a named approver (setting `purge.approvers`), never the one who asks; a dry run ends here |
| `apply` | follows the plan; stopped anywhere, a retry goes on |
| `verify` | reads the lake again |
| `certificate` | checks the chain of certificates, and shows the new one |

A rejected plan changes nothing. A plan is void when the lake has moved on under it: ask again.
"""

from datetime import timedelta

from airflow.sdk import DAG, Param

from headwater_airflow.operators.purge import (
    PurgeApplyOperator,
    PurgeApprovalOperator,
    PurgeCertificateOperator,
    PurgePlanOperator,
    PurgeVerifyOperator,
)

with DAG(
    "purge_sensitive_data",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=4,
    tags=["headwater", "purge"],
    default_args={"retries": 1, "retry_delay": timedelta(seconds=15)},
    params={
        "selection": Param(
            None,
            type=["string", "null"],
            pattern="^s-[0-9a-f]+$",
            title="Selection",
            description="The id of a selection, s-…; or give the ids of records below.",
        ),
        "records": Param(
            [],
            type="array",
            items={"type": "string", "pattern": "^lake:[^/#]+/[^/#]+[/#]"},
            title="Records",
            description="Ids of records, lake:…, one a line.",
        ),
        "reason": Param(
            "",
            type="string",
            maxLength=500,
            title="Reason",
            description="Why, for whoever approves: the number of a request, and no name.",
        ),
        "dry_run": Param(False, type="boolean", title="Dry run", description="Only plan."),
    },
):
    plan = PurgePlanOperator(
        task_id="plan",
        selection="{{ params.selection or '' }}",
        records="{{ params.records | join('\n') }}",
        reason="{{ params.reason }}",
    )
    approve = PurgeApprovalOperator(
        task_id="approve",
        plan=plan.output["plan"],
        dry_run="{{ params.dry_run }}",
        subject="Approve the purge of {{ ti.xcom_pull(task_ids='plan')['selection'] }}",
        body="{{ ti.xcom_pull(task_ids='plan')['markdown'] }}",
        response_timeout=timedelta(days=7),
    )
    apply = PurgeApplyOperator(task_id="apply", plan=plan.output["plan"])
    verify = PurgeVerifyOperator(task_id="verify", purge=apply.output)
    certificate = PurgeCertificateOperator(task_id="certificate", number=apply.output)
    plan >> approve >> apply >> verify >> certificate
