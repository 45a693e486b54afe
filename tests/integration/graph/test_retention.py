"""Pruning: what goes, what is said of it, and that it may be cut off anywhere."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from provenance_store.cli.prune import app
from provenance_store.errors import InputError, UnknownRecordError
from provenance_store.graph import batches
from provenance_store.graph import merge as merge_module
from provenance_store.graph import retention as retention_module
from provenance_store.graph.connection import Connection
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.snapshot import OvertakenError
from provenance_store.graph.trace import Question
from provenance_store.reduction.exact import reduce_messages
from provenance_store.reduction.output import write
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.declare import declare


class Chain:
    """A source from which a first run makes records in the middle, and a second run a result from these."""

    def __init__(self, word: str, reduced) -> None:
        self.source, self.result = f"lake:{word}-in/1#s", f"lake:{word}-out/1#r"
        self.middle = [f"lake:{word}-mid/1#{n}" for n in range(5)]
        self.runs = f"{word}-first", f"{word}-second"
        self.first = reduced(self.runs[0], [(record, self.source) for record in self.middle])
        self.second = reduced(self.runs[1], [(self.result, record) for record in self.middle])


@pytest.fixture
def chain(lake_graph, reduced, word) -> Chain:
    made = Chain(word, reduced)
    lake_graph.merge(made.first)
    lake_graph.merge(made.second)
    return made


def told(answer) -> tuple[list[str], str, list[str]]:
    return [r.id for r in answer.records], answer.verdict, [run.run for run in answer.runs if run.pruned]


def test_derivations_go_and_answers_say_so(lake_graph, chain, word):
    pruned = lake_graph.prune(dataset=f"{word}-mid")
    assert ([run.run for run in pruned.runs], pruned.edges, pruned.records) == ([chain.runs[0]], 5, 1)
    assert told(lake_graph.backward([chain.result])) == (chain.middle, "partial", [chain.runs[0]])
    assert told(lake_graph.backward([chain.middle[0]])) == ([], "partial", [chain.runs[0]])
    # In the other direction nothing is lacking, and nothing is met that far.
    assert told(lake_graph.forward([chain.middle[0]])) == ([chain.result], "complete", [])
    assert told(lake_graph.backward([chain.result], depth=1)) == (chain.middle, "complete", [])
    # But whether these are first sources is not known.
    assert told(lake_graph.backward([chain.result], depth=1, sources_only=True))[1] == "partial"
    with pytest.raises(UnknownRecordError, match=rf"does not hold {chain.source}, .* pruned with {chain.runs[0]}"):
        lake_graph.forward([chain.source])
    with pytest.raises(UnknownRecordError, match="never seen"):
        lake_graph.forward([f"lake:{word}-in/2#s"])
    assert json.loads(lake_graph.backward([chain.result]).to_json())["runs"] == [
        {"run": chain.runs[0], "dic": "dic", "verdict": "partial", "pruned": True},
        {"run": chain.runs[1], "dic": "dic", "verdict": "complete"},
    ]
    feeds = [(feed.source, feed.target) for feed in lake_graph.datasets() if feed.source.startswith(word)]
    assert feeds == [(f"{word}-mid", f"{word}-out")]
    run = "MATCH (r:Run {id: $run}) RETURN r.verdict, r.revision, r.generation, r.pruned_at IS NULL, r.unclean"
    assert lake_graph.cypher(run, {"run": chain.runs[0]}).rows == [["complete", None, 0, False, None]]
    again = lake_graph.prune(dataset=f"{word}-mid")
    assert (again.runs, again.edges, again.records) == ([], 0, 0)


def test_by_age_and_within_a_period(lake_graph, reduced, word):
    result, other = f"lake:{word}/1#r", f"lake:{word}/1#o"
    lake_graph.merge(reduced(f"{word}-old", [(result, f"lake:{word}-in/1#1"), (other, result)]))
    between = datetime.now(UTC)
    lake_graph.merge(reduced(f"{word}-new", [(result, f"lake:{word}-in/1#2")]))
    assert not lake_graph.prune(before=between - timedelta(days=1), dataset=word).runs
    pruned = lake_graph.prune(before=between, dataset=word)
    assert [run.run for run in pruned.runs] == [f"{word}-old"]
    assert told(lake_graph.backward([result])) == ([f"lake:{word}-in/1#2"], "partial", [f"{word}-old"])
    assert told(lake_graph.backward([result], since=between)) == ([f"lake:{word}-in/1#2"], "complete", [])
    assert told(lake_graph.backward([result], until=between)) == ([], "partial", [f"{word}-old"])


def test_a_dry_run_counts_and_changes_nothing(lake_graph, chain, word):
    before = lake_graph.backward([chain.result])
    plan = lake_graph.prune(dataset=f"{word}-mid", dry_run=True)
    (run,) = plan.runs
    assert (run.run, run.dic, run.edges, plan.edges, plan.records) == (chain.runs[0], "dic", 5, 0, 0)
    assert [(feed.source, feed.target, feed.edges) for feed in run.feeds] == [(f"{word}-in", f"{word}-mid", 5)]
    assert lake_graph.backward([chain.result]) == before


def test_what_to_prune_must_be_said(lake_graph):
    with pytest.raises(InputError, match="Say what to prune"):
        lake_graph.prune()
    with pytest.raises(InputError, match="time zone"):
        lake_graph.prune(before=datetime.now(UTC).replace(tzinfo=None))


def test_merged_again_it_is_back(lake_graph, chain, word, reduced):
    records = [chain.source, *chain.middle, chain.result]
    ask = lambda: [(lake_graph.backward([record]), lake_graph.forward([record])) for record in records]  # noqa: E731
    before = ask()
    for _ in range(2):
        lake_graph.prune(dataset=f"{word}-mid")
        assert lake_graph.backward([chain.result]).verdict == "partial"
        merged = lake_graph.merge(chain.first)
        assert (merged.changed, merged.replaced) == (True, False)
        assert ask() == before
    # Of another generation, what only the earlier one lost is no loss when that one goes.
    lake_graph.prune(dataset=f"{word}-mid")
    lake_graph.merge(reduced(chain.runs[0], [(chain.middle[0], chain.source)], generation=1))
    lake_graph.prune(dataset=f"{word}-mid")
    assert lake_graph.backward([chain.middle[0]]).verdict == "partial"
    assert lake_graph.backward([chain.middle[1]]).verdict == "complete"
    with pytest.raises(InputError, match="older generation 0"):
        lake_graph.merge(chain.first)


def test_a_record_that_comes_back_with_another_run_is_not_whole(lake_graph, chain, word, reduced):
    lake_graph.prune(dataset=f"{word}-mid")
    late = f"lake:{word}-late/1#l"
    lake_graph.merge(reduced(f"{word}-third", [(late, chain.source), (late, f"lake:{word}-in/2#s")]))
    assert told(lake_graph.forward([chain.source])) == ([late], "partial", [chain.runs[0]])
    assert told(lake_graph.forward([f"lake:{word}-in/2#s"])) == ([late], "complete", [])
    assert told(lake_graph.backward([late]))[1] == "complete"
    lake_graph.merge(chain.first)
    assert told(lake_graph.forward([chain.source]))[1] == "complete"


def test_a_record_that_goes_while_another_run_brings_it_back(lake_graph, chain, word, reduced, monkeypatch):
    """The prune comes when the merge has looked, and before it makes the record."""
    lake_graph.prune(dataset=f"{word}-out")
    inherit, prunes = merge_module.inherit, iter([lambda: lake_graph.prune(dataset=f"{word}-mid")])

    def look(*args):
        found = inherit(*args)
        next(prunes, lambda: None)()
        return found

    monkeypatch.setattr(merge_module, "inherit", look)
    late = f"lake:{word}-late/1#l"
    lake_graph.merge(reduced(f"{word}-third", [(late, chain.source)]))
    assert told(lake_graph.forward([chain.source])) == ([late], "partial", [chain.runs[0]])


def test_cut_off_anywhere_and_run_again(lake_graph, reduced, word, monkeypatch):
    """Each write of a prune fails once, before or after it was committed: readers see the run whole or pruned."""
    monkeypatch.setattr(batches, "BATCH_EDGES", 2)
    write_through = Connection.write
    seen = []
    for cut in itertools.count():
        name = f"{word}x{cut}"
        chain = Chain(name, reduced)
        lake_graph.merge(chain.first)
        lake_graph.merge(chain.second)
        whole = lake_graph.backward([chain.result])
        left = iter(range(cut // 2))

        def fail(connection, work, left=left, cut=cut):
            if next(left, None) is not None:
                return write_through(connection, work)
            if cut % 2:
                write_through(connection, work)
            raise ConnectionResetError

        monkeypatch.setattr(Connection, "write", fail)
        try:
            lake_graph.prune(dataset=f"{name}-mid")
        except ConnectionResetError:
            is_over = False
        else:
            is_over = True
        monkeypatch.setattr(Connection, "write", write_through)
        answer = lake_graph.backward([chain.result])
        pruned = (chain.middle, "partial", [chain.runs[0]])
        assert answer == whole or told(answer) == pruned
        seen.append(answer == whole)

        lake_graph.prune(dataset=f"{name}-mid")
        assert told(lake_graph.backward([chain.result])) == pruned
        counts = "MATCH (b:Batch {run: $run}) RETURN count(b)"
        assert lake_graph.cypher(counts, {"run": chain.runs[0]}).rows == [[0]]
        gone = "MATCH (r:Record {id: $id}) RETURN count(r)"
        assert lake_graph.cypher(gone, {"id": chain.source}).rows == [[0]]
        unclean = "MATCH (r:Run {id: $run}) RETURN r.unclean, r.pruning"
        assert lake_graph.cypher(unclean, {"run": chain.runs[0]}).rows == [[None, None]]
        lake_graph.merge(chain.first)
        assert lake_graph.backward([chain.result]) == whole
        if is_over:
            break
    # Begin, three batches noted and none left, the switch, three batches removed by two writes and none left, done.
    assert seen == [True] * 11 + [False] * 10


def test_a_run_that_is_replaced_meanwhile_is_left(lake_graph, chain, word, reduced, monkeypatch):
    note = retention_module._note

    def replace_first(*args):
        lake_graph.merge(reduced(chain.runs[0], [(chain.middle[0], chain.source)], generation=1))
        yield from note(*args)

    monkeypatch.setattr(retention_module, "_note", replace_first)
    pruned = lake_graph.prune(dataset=f"{word}-mid")
    assert ([run.run for run in pruned.left], pruned.runs) == ([chain.runs[0]], [])
    assert told(lake_graph.backward([chain.middle[0]])) == ([chain.source], "complete", [])


def test_readers_see_before_or_after(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 20)
    source = f"lake:{word}-in/1#s"
    middle = [(f"lake:{word}-mid/1#{n}", source) for n in range(200)]
    result = [(f"lake:{word}-out/1#r", record) for record, _ in middle]
    lake_graph.merge(reduced(f"{word}-kept", [(f"lake:{word}-kept/1#k", source), *result]))
    folder = reduced(f"{word}-run", middle)
    lake_graph.merge(folder)
    ask = lambda: (lake_graph.forward([source]), lake_graph.backward([f"lake:{word}-out/1#r"]))  # noqa: E731
    before = ask()
    lake_graph.prune(dataset=f"{word}-mid")
    after = ask()
    assert (before[0].verdict, after[0].verdict) == ("complete", "partial")

    def turns() -> None:
        for _ in range(3):
            lake_graph.merge(folder)
            lake_graph.prune(dataset=f"{word}-mid")

    with ThreadPoolExecutor(1) as executor:
        turning = executor.submit(turns)
        while not turning.done():
            for answer, allowed in zip(ask(), zip(before, after, strict=True), strict=True):
                assert answer in allowed
        turning.result()
    assert ask() == after


def test_a_page_of_what_was_found_before_is_refused(lake_graph, chain, word):
    trace = lake_graph.trace(Question((chain.result,), "backward"))
    lake_graph.prune(dataset=f"{word}-mid")
    with pytest.raises(OvertakenError):
        list(trace.records())
    trace = lake_graph.trace(Question((chain.result,), "backward"))
    lake_graph.merge(chain.first)
    with pytest.raises(OvertakenError):
        list(trace.records())


def test_a_declared_job_that_is_pruned_is_lacking_to_every_record_of_its_versions(
    lake_graph, reduced, word, tmp_path, monkeypatch
):
    raw, clean = f"{word}-raw", f"{word}-clean"
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    for version in (f"{raw}/v1", f"{clean}/v1"):
        (settings.lake / version).mkdir(parents=True)
    lake_graph.merge(reduced(f"{word}-1", [(f"lake:{raw}/v1/f#1", f"lake:{word}-source/v1#1")]))
    declare(settings, dic="cleaner", run=f"{word}-2", inputs=[f"{raw}/v1"], outputs=[f"{clean}/v1"])
    (folder,) = write(tmp_path / "out", reduce_messages(RecordingSource(settings.recordings / "headwater.cleaner")))
    lake_graph.merge(folder)
    lake_graph.merge(reduced(f"{word}-3", [(f"lake:{word}-totals/v1#a", f"lake:{clean}/v1/f#7")]))

    # What only the version knows: its records went with a captured run.
    lake_graph.prune(dataset=raw)
    answer = lake_graph.backward([f"lake:{word}-totals/v1#a"])
    assert told(answer) == ([f"lake:{clean}/v1/f#7", f"lake:{raw}/v1"], "partial", [f"{word}-1"])
    assert told(lake_graph.backward([f"lake:{raw}/v1/f#1"])) == ([], "partial", [f"{word}-1"])
    # The declared job itself.
    lake_graph.prune(dataset=clean)
    answer = lake_graph.backward([f"lake:{word}-totals/v1#a"])
    assert told(answer) == ([f"lake:{clean}/v1/f#7"], "partial", [f"{word}-2"])
    assert told(lake_graph.forward([f"lake:{clean}/v1/f#7"]))[1] == "complete"
    with pytest.raises(UnknownRecordError, match=rf"pruned with {word}-1, {word}-2"):
        lake_graph.forward([f"lake:{raw}/v1/f#1"])


def test_the_command_line(neo4j_service, lake_graph, chain, word, monkeypatch):
    monkeypatch.setenv("HEADWATER_NEO4J__URI", neo4j_service.neo4j_uri)
    monkeypatch.setenv("HEADWATER_NEO4J__PASSWORD", neo4j_service.neo4j_password())

    def run(*arguments: str, answer: str | None = None) -> str:
        result = CliRunner().invoke(app, arguments, input=answer, catch_exceptions=False)
        assert result.exit_code == (1 if answer == "n\n" else 0)
        return result.stdout

    chosen = ("--dataset", f"{word}-mid")
    shown = run(*chosen, "--dry-run")
    for cell in (chain.runs[0], f"{word}-in", "1 runs with 5 derivations"):
        assert cell in shown
    assert json.loads(run(*chosen, "--older-than", "1h", "--yes", "--json"))["runs"] == []
    assert "pruned" not in run(*chosen, answer="n\n")
    assert "1 runs pruned: 5 derivations and 1 records removed." in run(*chosen, answer="y\n")
    assert json.loads(run(*chosen, "--before", "2026-01-01", "--yes", "--json"))["edges"] == 0
    for arguments, sentence in (
        ((), "retention.days"),
        (("--older-than", "soon"), "is not a period"),
        (("--older-than", "1d", "--before", "2026-01-01"), "Give one of"),
    ):
        with pytest.raises(InputError, match=sentence):
            run(*arguments)


def test_the_period_of_the_settings(neo4j_service, lake_graph, chain, monkeypatch):
    monkeypatch.setenv("HEADWATER_NEO4J__URI", neo4j_service.neo4j_uri)
    monkeypatch.setenv("HEADWATER_NEO4J__PASSWORD", neo4j_service.neo4j_password())
    monkeypatch.setenv("HEADWATER_RETENTION__DAYS", "30")
    asked = []
    monkeypatch.setattr(
        LakeGraph, "prune", lambda _, **kw: asked.append(kw) or retention_module.Pruned(runs=[], left=[])
    )
    assert CliRunner().invoke(app, ["--dry-run"], catch_exceptions=False).exit_code == 0
    age = datetime.now(UTC) - asked[0]["before"]
    assert timedelta(days=30) <= age < timedelta(days=30, hours=1)
