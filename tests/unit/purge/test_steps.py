"""What becomes of each version, by its dataset's policy and by what happens to the versions it was made from."""

from pathlib import Path

import polars as pl
import pytest

from provenance_store.errors import InputError
from provenance_store.graph.consequences import KnownRun
from provenance_store.lake.catalogue import Catalogue
from provenance_store.purge.plan import Held, Step
from provenance_store.purge.reaching import Reached
from provenance_store.purge.standing import STANDING
from provenance_store.purge.steps import Steps
from provenance_store.purge.streams import StreamRuns
from provenance_store.purge.versions import list_made
from tests.handmade import put, tell

# A chain of three, as it is by default; tests change what they are about.
COLUMNS = 'format = "text"\ncolumns = ["name", "n"]\nseparator = "\\t"\n'
KEYED = COLUMNS + 'key = ["name"]\n'
POLICIES = {
    "raw": KEYED + 'policy = { do = "delete" }\n',
    "counts": KEYED + 'policy = { do = "recompute" }\n',
    "totals": KEYED + 'policy = { do = "recompute", decided_by = { counts = ["name"] } }\n',
}
LINES = ["a\t1", "b\t2", "c\t3"]


class Chain:
    """raw/v1, from which run c1 made counts/c1, from which run t1 made totals/t1."""

    def __init__(self, root: Path, **policies: str) -> None:
        self.root = root
        for dataset, told in {**POLICIES, **policies}.items():
            if told:
                tell(root, f"[{dataset}]\n{told}\n")
        put(root, "raw/v1", LINES)
        put(root, "counts/c1", LINES, run="c1", inputs=["raw/v1"])
        put(root, "totals/t1", LINES, run="t1", inputs=["counts/c1"])
        self.runs = {name: known(name) for name in ("c1", "t1")}

    def decide(self, selected: dict[str, int], reached: dict[str, int] | None = None, **more) -> dict[str, Step]:
        """Steps by version, where so many records of versions were selected and reached."""
        touched = touching(selected, reached or {}, **more)
        streams = StreamRuns(self.root, self.root / "home", touched.rows)
        decided = Steps(Catalogue.load(self.root), list_made(self.root), self.runs, streams).decide(touched)
        self.holds = decided.holds
        return {step.reference: step for step in decided.steps}


def known(run: str, **told) -> KnownRun:
    facts = {"dic": "dic", "verdict": "complete", "generation": 0, "revision": 1, "declared": False, "marks": []}
    return KnownRun(run=run, **facts | told)


def touching(selected: dict[str, int], reached: dict[str, int], *, declared=(), absent=None) -> Reached:
    rows = [
        (f"{version}{place}{how}", *version.split("/"), "f", place + 100 * how, how)
        for how, counts in ((True, selected), (False, reached))
        for version, count in counts.items()
        for place in range(count)
    ]
    frame = pl.DataFrame(rows, schema={**STANDING, "selected": pl.Boolean}, orient="row")
    return Reached(
        rows=frame,
        names=frame.drop("selected"),
        declared=list(declared),
        absent=absent or {},
        gone=[],
        foreign=[],
        runs=[],
    )


TOUCHED = {"counts/c1": 2, "totals/t1": 1}


def test_a_chain_is_followed_inputs_first(tmp_path: Path) -> None:
    steps = Chain(tmp_path).decide({"raw/v1": 1}, TOUCHED, absent={"counts/c1": 4})
    assert list(steps) == ["raw/v1", "counts/c1", "totals/t1"]
    assert [step.policy for step in steps.values()] == ["delete", "recompute", "recompute"]
    assert [(step.selected, step.reached, step.records) for step in steps.values()] == [(1, 0, 3), (0, 2, 3), (0, 1, 3)]
    assert [step.absent for step in steps.values()] == [0, 4, 0]
    assert not any(step.whole for step in steps.values())
    assert (steps["counts/c1"].run, steps["counts/c1"].dic, steps["counts/c1"].inputs) == ("c1", "dic", ["raw/v1"])


def test_untouched_versions_are_left_alone(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    put(tmp_path, "raw/v2", LINES)
    assert list(chain.decide({"raw/v1": 1})) == ["raw/v1"]


def test_selected_records_of_what_is_recomputed_are_deleted(tmp_path: Path) -> None:
    steps = Chain(tmp_path).decide({"counts/c1": 1}, {"totals/t1": 1})
    assert [step.policy for step in steps.values()] == ["delete", "recompute"]
    assert not steps["totals/t1"].whole  # a record of counts goes, and none changes


SUMS = KEYED + 'policy = { do = "recompute", sums = ["n"] }\n'


def test_what_deleted_records_added_is_taken_away_where_that_is_enough(tmp_path: Path) -> None:
    steps = Chain(tmp_path, counts=SUMS, totals=SUMS).decide({"raw/v1": 1}, TOUCHED)
    assert [step.subtracts for step in steps.values()] == [False, True, False]  # the counts change, and none goes


@pytest.mark.parametrize(
    ("raw", "more", "subtracts"),
    [
        (KEYED + 'policy = { do = "delete" }\n', SUMS, True),
        (KEYED + 'policy = { do = "redact", null = ["n"] }\n', SUMS, False),
        # the outputs of a run are made anew together
        (KEYED + 'policy = { do = "delete" }\n', KEYED + 'policy = { do = "recompute" }\n', False),
    ],
)
def test_otherwise_it_is_not(tmp_path: Path, raw: str, more: str, subtracts: bool) -> None:
    chain = Chain(tmp_path, raw=raw, counts=SUMS, more=more)
    put(tmp_path, "more/c1", LINES, run="c1", inputs=["raw/v1"])
    steps = chain.decide({"raw/v1": 1}, {"counts/c1": 1, "more/c1": 1})
    assert steps["counts/c1"].subtracts is subtracts
    assert steps["more/c1"].subtracts is subtracts


@pytest.mark.parametrize("reached", [{}, TOUCHED])
def test_marks_make_a_version_whole_even_where_nothing_was_reached(tmp_path: Path, reached: dict[str, int]) -> None:
    chain = Chain(tmp_path)
    chain.runs["c1"] = known("c1", marks=["limit", "anti join"])
    steps = chain.decide({"raw/v1": 1}, reached)
    assert steps["counts/c1"].whole == (
        "Run c1 crossed anti join and limit, where taking a record away can make new ones."
    )
    assert steps["counts/c1"].reads == 3
    # and whoever reads a version in which new records may come is made anew too
    assert steps["totals/t1"].whole == "It was made from counts/c1, which is made anew as a whole."


def test_what_is_not_recomputed_is_not_made_whole(tmp_path: Path) -> None:
    chain = Chain(tmp_path, counts=POLICIES["raw"])
    chain.runs["c1"] = known("c1", marks=["limit"])
    assert list(chain.decide({"raw/v1": 1})) == ["raw/v1"]
    steps = chain.decide({"raw/v1": 1}, TOUCHED)
    assert (steps["counts/c1"].policy, steps["counts/c1"].whole) == ("delete", "")


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (known("c1", verdict="partial"), "What is known of run c1 is partial"),
        (known("c1", revision=None), "no graph of run c1"),
        (None, "no graph of run c1"),
    ],
)
def test_doubtful_provenance_makes_a_version_whole(tmp_path: Path, run: KnownRun | None, reason: str) -> None:
    chain = Chain(tmp_path)
    chain.runs = {name: one for name, one in {**chain.runs, "c1": run}.items() if one}
    assert reason in chain.decide({"raw/v1": 1})["counts/c1"].whole


def test_a_dataset_without_a_key_is_made_whole(tmp_path: Path) -> None:
    chain = Chain(tmp_path, counts=COLUMNS + 'policy = { do = "recompute" }\n')
    assert "no key" in chain.decide({"raw/v1": 1}, TOUCHED)["counts/c1"].whole
    assert list(chain.decide({"raw/v1": 1})) == ["raw/v1"]


@pytest.mark.parametrize(
    ("decided_by", "reason"),
    [
        ("", "does not tell which of their columns decide"),
        (', decided_by = { counts = ["name", "n"] }', "change in columns that decide"),
        (', decided_by = { counts = ["name"] }', ""),
    ],
)
def test_records_that_change_may_go_elsewhere(tmp_path: Path, decided_by: str, reason: str) -> None:
    chain = Chain(tmp_path, totals=f'{KEYED}policy = {{ do = "recompute"{decided_by} }}\n')
    assert reason in chain.decide({"raw/v1": 1}, TOUCHED)["totals/t1"].whole
    # a changed record may also go where none of its kind went before
    assert ("totals/t1" in chain.decide({"raw/v1": 1}, {"counts/c1": 1})) == bool(reason)


@pytest.mark.parametrize(("field", "is_whole"), [("name", True), ("n", False)])
def test_redacted_fields_may_decide(tmp_path: Path, field: str, is_whole: bool) -> None:
    chain = Chain(
        tmp_path,
        raw=f'{COLUMNS}policy = {{ do = "redact", null = ["{field}"] }}\n',
        counts=KEYED + 'policy = { do = "recompute", decided_by = { raw = ["name"] } }\n',
    )
    steps = chain.decide({"raw/v1": 1}, TOUCHED)
    assert steps["raw/v1"].policy == "redact"
    assert bool(steps["counts/c1"].whole) == is_whole


def test_a_hold_is_told_with_who_and_why(tmp_path: Path) -> None:
    chain = Chain(tmp_path, totals=KEYED + 'policy = { do = "hold", who = "court", why = "trial 7" }\n')
    assert list(chain.decide({"raw/v1": 1}, {"counts/c1": 1})) == ["raw/v1", "counts/c1"]
    assert chain.holds == []
    put(tmp_path, "totals/t0", LINES)
    assert list(chain.decide({"totals/t0": 1}, {"counts/c1": 1, "totals/t1": 2})) == ["counts/c1"]
    assert chain.holds == [Held("totals", "court", "trial 7", 3)]


def test_a_declared_job_touches_all_that_it_made(tmp_path: Path) -> None:
    chain = Chain(tmp_path, counts=POLICIES["raw"])
    version = list_made(tmp_path)["counts/c1"].version
    steps = chain.decide({"raw/v1": 1}, {"counts/c1": 3}, declared=[version])
    assert "only declared" in steps["counts/c1"].whole


@pytest.mark.parametrize(
    ("policies", "reached", "reason"),
    [
        ({"counts": ""}, TOUCHED, "Records of 'counts' are touched"),
        ({}, {"totals/t0": 1}, "no captured run made it"),
        ({}, {"totals/t2": 1}, "raw/v0, from which run t2 made it, is no longer in the lake"),
        ({}, {"totals/t3": 1}, "made it from nothing"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, policies, reached: dict[str, int], reason: str) -> None:
    chain = Chain(tmp_path, **policies)
    put(tmp_path, "totals/t0", LINES)
    put(tmp_path, "totals/t2", LINES, run="t2", inputs=["raw/v0"])
    put(tmp_path, "totals/t3", LINES, run="t3")
    with pytest.raises(InputError, match=reason):
        chain.decide({"raw/v1": 1}, reached)


def test_versions_made_from_each_other_are_refused(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    put(tmp_path, "raw/x", LINES, run="x", inputs=["raw/y"])
    put(tmp_path, "raw/y", LINES, run="y", inputs=["raw/x"])
    with pytest.raises(InputError, match="made from each other"):
        chain.decide({"raw/v1": 1})
