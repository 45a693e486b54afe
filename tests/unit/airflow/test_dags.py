import subprocess
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

DAGS = Path(__file__).parents[3] / "dags"
HEAVY = ("polars", "pyarrow", "pandas", "pyspark", "neo4j", "kafka", "great_expectations", "numba")


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(str(DAGS))


def test_every_file_is_one_dag_that_can_be_parsed(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert set(bag.dags) == {path.stem for path in DAGS.glob("*.py")}


def test_each_tells_what_it_is_and_is_tried_again(bag: DagBag) -> None:
    for dag in bag.dags.values():
        assert dag.doc_md.strip().startswith("### ")
        assert "headwater" in dag.tags
        assert all(task.retries for task in dag.tasks)


def test_the_reducer_goes_on_beside_its_dic(bag: DagBag) -> None:
    for name, dic in {"twitter_hashtags": "count", "twitter_categories": "total", "orders_report": "report"}.items():
        dag = bag.dags[name]
        reduce = dag.get_task("reduce")
        assert dic not in reduce.get_flat_relative_ids(upstream=True)
        assert dic not in reduce.get_flat_relative_ids(upstream=False)
        assert {dic, "reduce", "check_graph"} <= dag.get_task("merge").get_flat_relative_ids(upstream=True)


def test_nothing_is_purged_without_an_approval(bag: DagBag) -> None:
    dag = bag.dags["purge_sensitive_data"]
    chain = ["plan", "approve", "apply", "verify", "certificate"]
    assert [task.task_id for task in dag.topological_sort()] == chain
    assert set(dag.params) == {"selection", "records", "reason", "dry_run"}


def test_parsing_imports_nothing_that_takes_long() -> None:
    """Airflow parses each file again and again: what its tasks need is imported when they run."""
    program = (
        f"import sys, runpy\nfor name in {sorted(map(str, DAGS.glob('*.py')))}: runpy.run_path(name)\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
