"""Where the DAG run of a run is looked for."""

import re

from hypothesis import given
from hypothesis import strategies as st

from headwater_airflow.explorer.dag_runs import _pattern
from headwater_airflow.runs import run_of


def is_like(text: str, pattern: str) -> bool:
    """As SQL has it, with a backslash before what is meant as it stands."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    expression = "".join(".*" if one == "%" else re.escape(one[-1]) for one in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None


@given(st.from_regex("[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?", fullmatch=True), st.text(min_size=1, max_size=250))
def test_the_dag_run_of_a_run_is_among_the_candidates(dic: str, dag_run: str) -> None:
    pattern = _pattern(run_of(dic, "dag", dag_run), dic)
    assert pattern is None or is_like(dag_run, pattern)


@given(st.datetimes(), st.sampled_from(["manual", "scheduled", "asset_triggered"]))
def test_airflows_own_ids_are_found(at, kind) -> None:
    dag_run = f"{kind}__{at.isoformat()}+00:00_Ab_9"
    pattern = _pattern(run_of("hashtag-count", "twitter_dag", dag_run), "hashtag-count")
    assert pattern is not None
    assert is_like(dag_run, pattern)


def test_runs_that_no_dag_made_have_none() -> None:
    assert _pattern("hashtag-count-20261116T062936Z", "order-report") is None
    assert _pattern("mine", "hashtag-count") is None
