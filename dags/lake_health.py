"""
### Lake health

Looks at the whole lake once a day and changes nothing. A task that fails tells all that it found in its log.

| task | holds |
|---|---|
| `suites` | the newest version of every dataset to its suite of expectations |
| `completeness` | the lake graph to the versions of the lake: every run merged, whole, and of its last execution |
| `ended` | runs to their end: none began more than a day ago and has been silent since |
| `retention` | the lake graph to the setting `retention.days` |
| `streams` | stream jobs to going on: none stands still, drops much of what comes, or is ahead of the lake graph |
"""

from datetime import datetime, timedelta

from airflow.sdk import DAG

from headwater_airflow.operators.health import (
    CheckCompletenessOperator,
    CheckEndedOperator,
    CheckRetentionOperator,
    CheckStreamsOperator,
    CheckSuitesOperator,
)

with DAG(
    "lake_health",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - Airflow takes it as UTC
    catchup=False,
    tags=["headwater", "health"],
    default_args={"retries": 1, "retry_delay": timedelta(minutes=1)},
):
    CheckSuitesOperator(task_id="suites")
    CheckCompletenessOperator(task_id="completeness")
    CheckEndedOperator(task_id="ended")
    CheckRetentionOperator(task_id="retention")
    CheckStreamsOperator(task_id="streams", minutes=24 * 60)
