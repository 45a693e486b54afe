"""
### Hashtags

Brings tweets into the lake, counts their hashtags on Hadoop, and puts the provenance of each count into the lake graph.
The reducer goes on **beside** the count: it takes the messages of the job as they come, and the task that waits for it
holds no worker.

| task | does |
|---|---|
| `ingest` | writes a new version of `tweets` (synthetic: as many as the form says) |
| `check_tweets` | holds it to its suite of expectations |
| `count` | counts on Hadoop, captured |
| `reduce` | from full provenance to which count came from which tweets |
| `check_counts`, `check_graph` | no graph is merged that is incomplete, or speaks of records that are not there |
| `merge` | makes it visible in the lake graph, and tells `hashtag_counts`, which starts `twitter_categories` |
"""

from datetime import timedelta

from airflow.sdk import DAG, Param

from headwater_airflow.assets import HASHTAG_COUNTS, TWEETS
from headwater_airflow.operators.dics import RunHadoopDicOperator
from headwater_airflow.operators.gates import GateOperator, GraphGateOperator
from headwater_airflow.operators.graphs import MergeOperator
from headwater_airflow.operators.ingest import GenerateOperator
from headwater_airflow.operators.reduce import ReduceRunOperator

DIC = "hashtag-count"

with DAG(
    "twitter_hashtags",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["headwater", "twitter"],
    default_args={"retries": 2, "retry_delay": timedelta(seconds=15)},
    params={
        "count": Param(500, type="integer", minimum=1, maximum=10_000_000, title="Tweets", description="How many."),
        "seed": Param(1, type="integer", title="Seed", description="The same seed makes the same tweets."),
    },
):
    ingest = GenerateOperator(
        task_id="ingest", what="tweets", count="{{ params.count }}", seed="{{ params.seed }}", outlets=[TWEETS]
    )
    check_tweets = GateOperator(task_id="check_tweets", versions=ingest.output)
    count = RunHadoopDicOperator(task_id="count", dic=DIC, inputs=[ingest.output])
    reduce = ReduceRunOperator(task_id="reduce", dic=DIC, outputs=["hashtag_counts"])
    check_counts = GateOperator(task_id="check_counts", versions=count.output["outputs"])
    check_graph = GraphGateOperator(task_id="check_graph", job=count.output)
    merge = MergeOperator(task_id="merge", dic=DIC, outlets=[HASHTAG_COUNTS])
    check_tweets >> [count, reduce]
    reduce >> check_graph
    [check_counts, check_graph] >> merge
