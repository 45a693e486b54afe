"""
### Orders

Brings orders and customers into the lake, and reports on them with Spark DataFrames: totals by country, and the largest
orders of each. The report ranks rows, so its run is marked: a purge that crosses it makes its outputs anew as a whole.
"""

from datetime import timedelta

from airflow.sdk import DAG, Param

from headwater_airflow.assets import COUNTRY_TOTALS, ORDERS, TOP_ORDERS
from headwater_airflow.operators.dics import RunSparkDicOperator
from headwater_airflow.operators.gates import GateOperator, GraphGateOperator
from headwater_airflow.operators.graphs import MergeOperator
from headwater_airflow.operators.ingest import GenerateOperator
from headwater_airflow.operators.reduce import ReduceRunOperator

DIC = "order-report"

with DAG(
    "orders_report",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["headwater", "orders"],
    default_args={"retries": 2, "retry_delay": timedelta(seconds=15)},
    params={
        "count": Param(1000, type="integer", minimum=1, maximum=10_000_000, title="Orders", description="How many."),
        "seed": Param(1, type="integer", title="Seed", description="The same seed makes the same orders."),
    },
):
    ingest = GenerateOperator(
        task_id="ingest", what="orders", count="{{ params.count }}", seed="{{ params.seed }}", outlets=[ORDERS]
    )
    report = RunSparkDicOperator(task_id="report", dic=DIC, inputs=[ingest.output, "customers"])
    reduce = ReduceRunOperator(task_id="reduce", dic=DIC, outputs=["country_totals", "top_orders"])
    check_report = GateOperator(task_id="check_report", versions=report.output["outputs"])
    check_graph = GraphGateOperator(task_id="check_graph", job=report.output)
    merge = MergeOperator(task_id="merge", dic=DIC, outlets=[COUNTRY_TOTALS, TOP_ORDERS])
    ingest >> reduce >> check_graph
    [check_report, check_graph] >> merge
