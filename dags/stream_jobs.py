"""
### Stream jobs

Keeps a stream job and its provenance running, and its health visible. Paused until you start it. The job goes on beside
Airflow: a run of this DAG watches it for five minutes without holding a worker, and the next one finds it going on. One
that has ended is started again at once, from its checkpoint.

| task | does |
|---|---|
| `job` | runs the query with its live provenance; results are published in segments while it goes on |
| `follow_live` | takes what the query tells into the lake graph, beside it |
| `health` | fails where a job stands still, drops much of what comes, or tells more than is taken in |

Which query: the Airflow Variable `headwater_stream_query`, the path of its description, with a run id of its own in
`headwater_stream_run`; `headwater_stream_seconds` is how long a run of this DAG watches. Without a query it is an
example, ItemMonitor on generated visits of a shop's items. To end a job, pause this DAG, then `headwater streams stop
RUN`; `headwater streams run QUERY --run RUN` finishes its run. Its results, their sources and how they came about are
in the explorer: *Lineage* under *Browse*, then *Streams*.
"""

from datetime import datetime, timedelta

from airflow.sdk import DAG

from headwater_airflow.operators.health import CheckStreamsOperator
from headwater_airflow.operators.streams import FollowLiveOperator, HeadwaterStreamOperator

SECONDS = "{{ var.value.get('headwater_stream_seconds', 300) }}"

with DAG(
    "stream_jobs",
    doc_md=__doc__,
    schedule="@continuous",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - Airflow takes it as UTC
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["headwater", "streams"],
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
):
    job = HeadwaterStreamOperator(
        task_id="job",
        query="{{ var.value.get('headwater_stream_query', '') }}",
        run_id="{{ var.value.get('headwater_stream_run', 'item-monitor') }}",
        seconds=SECONDS,
    )
    follow_live = FollowLiveOperator(task_id="follow_live", seconds=SECONDS)
    [job, follow_live] >> CheckStreamsOperator(task_id="health", trigger_rule="all_done")
