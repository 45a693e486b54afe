"""The purge, a task for each step: plan, approval by someone else, apply, verify, certificate."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.definitions.param import Param, ParamsDict
from airflow.sdk.exceptions import AirflowSkipException

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.lineage import lineage_of
from headwater_airflow.operators.base import HeadwaterOperator, failing_plainly
from provenance_store.errors import InputError, JobError

_NOBODY = "airflow"


class PurgePlanOperator(HeadwaterOperator):
    """Plan the purge of a selection, or of records by their ids; nothing is changed.

    The plan's id is returned, and what it says for people. Ids are the only thing that names a record here.
    """

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "selection", "records", "reason")

    def __init__(
        self,
        *,
        selection: str | None = None,
        records: str | Sequence[str] | None = None,
        reason: str = "",
        **kwargs: Any,
    ) -> None:
        # Each part of the result can be given to another task: `plan.output["plan"]`.
        super().__init__(**{"multiple_outputs": True, **kwargs})
        self.selection = selection
        self.records = records
        self.reason = reason

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, str]:
        """Plan it, in the name of whoever asks."""
        from headwater_airflow.plans import as_markdown
        from provenance_store.purge.planning import make_plan

        who = requester(context)
        selection = self._select(hook, who)
        with hook.lake_graph(who=who) as graph:
            made = make_plan(hook.settings, graph, selection, by=who, say=self.log.info)
        return {"plan": made.id, "selection": selection, "markdown": as_markdown(made, reason=self.reason)}

    def _select(self, hook: HeadwaterHook, who: str) -> str:
        from provenance_store.purge.selection import select_ids

        selection = (self.selection or "").strip()
        records = self.records.splitlines() if isinstance(self.records, str) else list(self.records or ())
        ids = [line.strip() for line in records if line.strip()]
        if bool(selection) == bool(ids):
            raise InputError("Give a selection, s-…, or the ids of records: one of the two.")
        return selection or select_ids(hook.settings, ids, by=who).id


class PurgeApprovalOperator(ApprovalOperator):
    """Have a plan approved by one of the setting `purge.approvers`, and never by the one who asks for the purge.

    Whoever approves is written to the plan by name, which the purge asks for. A dry run ends here.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "plan", "dry_run", "headwater_conn_id")

    def __init__(
        self,
        *,
        plan: Any,
        dry_run: bool | str = False,
        headwater_conn_id: str = HeadwaterHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        despite = Param(
            "",
            type=["string", "null"],
            title="Despite",
            description="Only where the plan says that provenance is incomplete: why it is approved all the same.",
            source="task",
        )
        # Those of the DAG come along, and are left out of the form by what they say of their source.
        params = ParamsDict()
        params.update(kwargs.pop("params", None) or {})
        params.update({"despite": despite})
        super().__init__(params=params, **kwargs)
        self.plan = plan
        self.dry_run = dry_run
        self.headwater_conn_id = headwater_conn_id

    def execute(self, context: Context) -> Any:
        """Ask those who may."""
        if str(self.dry_run).lower() == "true":
            raise AirflowSkipException("A dry run ends with its plan.")
        from provenance_store.purge.plan import open_plan

        hook = HeadwaterHook(self.headwater_conn_id)
        with failing_plainly():
            stored = open_plan(hook.settings.lake, str(self.plan))
            if stored.plan.holds:
                held = "; ".join(f"{one.dataset} is held by {one.who}: {one.why}" for one in stored.plan.holds)
                raise InputError(f"Plan {stored.id} touches what may not be changed. {held}")
            who = requester(context)
            others = [name for name in hook.settings.purge.approvers if name != who]
            if not others:
                raise InputError(f"{who} asks for this purge, and nobody else may approve it: name more approvers.")
        self.assigned_users = [{"id": name, "name": name} for name in others]
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Write the approval to the plan."""
        from provenance_store.purge.approval import approve

        answer = super().execute_complete(context, event)
        if answer["chosen_options"] != [self.APPROVE]:
            return None
        hook = HeadwaterHook(self.headwater_conn_id)
        by = str((answer["responded_by_user"] or {}).get("name") or "")
        with failing_plainly():
            if not by or by == requester(context) or by not in hook.settings.purge.approvers:
                raise InputError(f"Plan {self.plan} was approved by {by or 'nobody'}, who may not approve it.")
            despite = str((answer["params_input"] or {}).get("despite") or "")
            with hook.lake_graph(who=by) as graph:
                given = approve(hook.settings, graph, str(self.plan), by=by, despite=despite)
        return {"plan": given.plan, "approved_by": given.who, "approved_at": given.when}


class PurgeApplyOperator(HeadwaterOperator):
    """Follow an approved plan to its certificate; tried again, it goes on where it was. Returns the number."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "plan")

    def __init__(self, *, plan: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plan = plan
        self._touched: list[str] = []

    def run(self, context: Context, hook: HeadwaterHook) -> int:
        """Apply it on Spark, in a process of its own."""
        from provenance_store.purge.plan import open_plan

        self._touched = [step.reference for step in open_plan(hook.settings.lake, str(self.plan)).plan.steps]
        told = hook.run_application([sys.executable, "-m", "spark_apps.purge", str(self.plan)], "The purge")
        return int(told["certificate"])

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """What it changed."""
        return lineage_of(outputs=self._touched)


class PurgeVerifyOperator(HeadwaterOperator):
    """Read the lake again: a purge that does not verify fails here, whatever its certificate says."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "purge")

    def __init__(self, *, purge: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.purge = purge

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, Any]:
        """Verify it."""
        from provenance_store.purge.again import verify_again

        with hook.lake_graph(who=requester(context)) as graph:
            verified = verify_again(hook.settings, graph, str(self.purge))
        for finding in verified.findings:
            self.log.info("%s: %s", finding.name, finding.sentence)
        if not verified.passed:
            failed = [finding.sentence for finding in verified.findings if finding.passed is False]
            raise JobError(f"Purge {self.purge} is NOT verified:\n" + "\n".join([*verified.faults, *failed]))
        return {"certificate": verified.certificate, "findings": len(verified.findings)}


class PurgeCertificateOperator(HeadwaterOperator):
    """Show the certificate of a purge, once all certificates are checked to be as they were issued."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "number")

    def __init__(self, *, number: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.number = number

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, Any]:
        """Read it."""
        from provenance_store.purge.certificate import check_chain, read_all

        chain = check_chain(hook.settings.lake)
        if chain.faults:
            raise JobError("\n".join(chain.faults))
        issued = {one.number: one for one in read_all(hook.settings.lake)}
        certificate = issued[int(self.number)]
        told: dict[str, Any] = msgspec.to_builtins(certificate)
        return {**told, "passed": certificate.passed, "last_hash": chain.last}


def requester(context: Context) -> str:
    """Who asked for what the DAG run does."""
    return context["dag_run"].triggering_user_name or _NOBODY
