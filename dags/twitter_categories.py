"""
### Categories

Adds the counts of hashtags up by category, on Spark, whenever `twitter_hashtags` has merged new counts: it reads
exactly the version that it was started by. The reducer goes on beside it, as there.
"""

from datetime import timedelta

from airflow.sdk import DAG

from headwater_airflow.assets import CATEGORY_TOTALS, HASHTAG_COUNTS
from headwater_airflow.operators.dics import RunSparkDicOperator
from headwater_airflow.operators.gates import GateOperator, GraphGateOperator
from headwater_airflow.operators.graphs import MergeOperator
from headwater_airflow.operators.reduce import ReduceRunOperator

DIC = "category-totals"

with DAG(
    "twitter_categories",
    doc_md=__doc__,
    schedule=[HASHTAG_COUNTS],
    catchup=False,
    tags=["headwater", "twitter"],
    default_args={"retries": 2, "retry_delay": timedelta(seconds=15)},
):
    total = RunSparkDicOperator(task_id="total", dic=DIC, inputs=["hashtag_counts", "categories"])
    reduce = ReduceRunOperator(task_id="reduce", dic=DIC, outputs=["category_totals"])
    check_totals = GateOperator(task_id="check_totals", versions=total.output["outputs"])
    check_graph = GraphGateOperator(task_id="check_graph", job=total.output)
    merge = MergeOperator(task_id="merge", dic=DIC, outlets=[CATEGORY_TOTALS])
    reduce >> check_graph
    [check_totals, check_graph] >> merge
