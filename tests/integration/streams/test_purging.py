"""Purges that reach the results of streams, from selection to certificate: deleted, or made anew without the events."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.layout import Version, new_version, version_of
from provenance_store.lake.records import lines_of
from provenance_store.lake.rewriting import rewrite
from provenance_store.purge.again import verify_again
from provenance_store.purge.apply import Task, apply
from provenance_store.purge.approval import approve
from provenance_store.purge.certificate import Certificate, check_chain
from provenance_store.purge.findings import Finding
from provenance_store.purge.plan import StoredPlan
from provenance_store.purge.planning import make_plan
from provenance_store.purge.selection import select_ids
from provenance_store.settings import Settings
from provenance_store.streams.checkpoints import Checkpoints, is_kept
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import run_locally
from provenance_store.streams.functions import Function
from provenance_store.streams.operators import Aggregate, Average, Filter
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.runs import StreamRun
from provenance_store.streams.windows import Trigger, Window
from tests.handmade import tell

_numbers = itertools.count()
READINGS = [{"time": 10 * n, "value": float(n * n % 17), "who": "ab"[n % 2], "sensor": n % 3} for n in range(24)]
KINDS = pytest.mark.parametrize(
    ("landed", "by"), [(True, ()), (True, ("who",)), (False, ()), (False, ("who",))], ids=str
)


class PlainEngine:
    """Writes here, and has nothing else to run: streams are made anew without Spark."""

    def rewrite(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            rewrite(*task)

    @property
    def rerun(self) -> Any:
        return None


class World:
    """A lake with a finished run of a query over readings, merged into the lake graph."""

    def __init__(
        self, settings: Settings, folder: Path, policy: str, *, landed: bool, by: tuple[str, ...], number: int
    ) -> None:
        self.settings = settings.model_copy(
            update={"lake": folder / f"lake-{number}", "recordings": folder / f"recordings-{number}"}
        )
        self.run, self.landed = f"purged-stream-{number}", landed
        self.source, self.means, self.groups = (f"ps-{name}-{number}" for name in ("readings", "means", "groups"))
        self.query = StreamQuery(
            name=f"ps-query-{number}",
            sources=(Source(name="x", dataset=self.source, topic="ps.readings" if landed else None),),
            operators=(
                Filter(
                    name="low",
                    input="x",
                    function=Function("compare", {"field": "value", "comparison": "<", "value": 16}),
                ),
                Average(name="y", input="low", field="value", window=Window("length", 3), trigger=Trigger("events", 2)),
                Aggregate(
                    name="z",
                    input="x",
                    function=Function("sum", {"field": "value"}),
                    window=Window("time", 60),
                    trigger=Trigger("time", 60),
                    by=("sensor",),
                ),
            ),
            sinks=(Sink(stream="y", dataset=self.means), Sink(stream="z", dataset=self.groups)),
            by=by,
        )
        told = f'format = "jsonl"\npolicy = {{ do = "{policy}" }}\n'
        tell(self.settings.lake, f'[{self.source}]\nformat = "jsonl"\npolicy = {{ do = "delete" }}\n')
        tell(self.settings.lake, f"[{self.means}]\n{told}\n[{self.groups}]\n{told}\n")

    def execute(self, readings: Sequence[dict[str, Any]]) -> None:
        at, arrivals, lines = 0, [], []
        for number, one in enumerate(readings):
            origin = ("t-0", number) if self.landed else ("v/part.jsonl", at)
            arrivals.append(Arrival("x", one["time"], origin, 0, one))
            lines.append(msgspec.json.encode(one) + b"\n")
            at += len(lines[-1])
        if not self.landed:
            with new_version(version_of(self.settings.lake, self.source, "v"), {}) as folder:
                (folder / "part.jsonl").write_bytes(b"".join(lines))
        batches = [(arrivals[:8], 80), (arrivals[8:16], 160), (arrivals[16:], 240)]
        run_locally(
            self.settings.home, self.settings.lake, self.query, self.run, batches, buckets=2, checkpoint_every=1
        )

    def version(self, dataset: str) -> Version:
        name = "v" if dataset == self.source and not self.landed else self.run
        return version_of(self.settings.lake, dataset, name)

    def read(self, dataset: str) -> dict[str, bytes]:
        return dict(lines_of(self.version(dataset)))

    def results(self) -> dict[str, bytes]:
        return self.read(self.means) | self.read(self.groups)

    def reading(self, number: int) -> str:
        wanted = msgspec.json.encode(READINGS[number])
        return next(one for one, line in self.read(self.source).items() if line == wanted)

    def ancestors(self) -> dict[str, set[str]]:
        links = StreamRun(self.settings.lake, self.run).backward(list(self.results()), replayed=True)
        assert all(links.exact)
        found: dict[str, set[str]] = {one: set() for one in self.results()}
        for output, source in zip(links.outputs, links.inputs, strict=True):
            found[output].add(source)
        return found


class Purged:
    """Plans and applies in one world."""

    def __init__(self, world: World, graph: LakeGraph) -> None:
        self.world, self.graph = world, graph
        graph.merge(world.settings.lake / "_streams" / world.run)

    def plan(self, *chosen: str) -> StoredPlan:
        selection = select_ids(self.world.settings, list(chosen), by="engineer")
        return make_plan(self.world.settings, self.graph, selection.id, by="engineer")

    def apply(self, plan: StoredPlan) -> Certificate:
        approve(self.world.settings, self.graph, plan.id, by="officer")
        return apply(self.world.settings, self.graph, plan.id, PlainEngine())

    def verify(self, certificate: Certificate) -> dict[str, Finding]:
        again = verify_again(self.world.settings, self.graph, str(certificate.number))
        return {finding.name: finding for finding in again.findings}


@pytest.fixture
def made(neo4j_service: Settings, tmp_path: Path, landed: bool, by: tuple[str, ...], policy: str) -> Iterator[Purged]:
    world = World(neo4j_service, tmp_path, policy, landed=landed, by=by, number=next(_numbers))
    world.execute(READINGS)
    with LakeGraph(world.settings) as graph:
        yield Purged(world, graph)


@KINDS
@pytest.mark.parametrize("policy", ["delete"])
def test_results_made_from_a_record_go_and_all_others_stay(made: Purged) -> None:
    world = made.world
    before, sources, from_ = world.results(), world.read(world.source), world.ancestors()
    chosen = world.reading(9)
    gone = {one for one, inputs in from_.items() if chosen in inputs}
    assert gone
    assert is_kept(world.settings.home, world.run)
    plan = made.plan(chosen)
    assert not plan.plan.incomplete
    assert plan.plan.forgets == [world.run]
    topics = {topic.name for topic in plan.plan.topics}
    assert f"headwater.live.{world.query.name}" in topics
    assert ("ps.readings" in topics) == world.landed
    certificate = made.apply(plan)
    assert certificate.passed, certificate.findings
    assert certificate.forgotten == [world.run]
    assert not check_chain(world.settings.lake).faults
    assert not is_kept(world.settings.home, world.run)
    assert world.results() == {one: line for one, line in before.items() if one not in gone}
    assert world.read(world.source) == {one: line for one, line in sources.items() if one != chosen}
    # What is left is told to be made from what it was made from, and what went is named, and known to be gone.
    exact = [one for one in world.results() if one.startswith(f"lake:{world.means}/")]
    links = StreamRun(world.settings.lake, world.run).backward(exact)
    assert {one: {i for o, i in zip(links.outputs, links.inputs, strict=True) if o == one} for one in exact} == {
        one: from_[one] for one in exact
    }
    answer = made.graph.backward([min(gone)])
    assert chosen in {record.id for record in answer.records}
    assert [stone.id for stone in made.graph.buried([chosen, *sorted(gone), exact[0]])] == [chosen, *sorted(gone)]
    # Of groups, a replay would need the record that is gone: what keys leave possible is told, and that it is not sure.
    group = next(one for one in world.results() if one.startswith(f"lake:{world.groups}/"))
    told = made.graph.backward([group], replay=True)
    assert from_[group] <= {record.id for record in told.records}
    # What is left undone is found.
    Checkpoints(world.settings.home, world.run, 0).write(1, b"state", most=1)
    assert made.verify(certificate)["checkpoints and caches of streams are gone"].passed is False


@KINDS
@pytest.mark.parametrize("policy", ["recompute"])
def test_results_are_what_the_stream_makes_without_the_records(
    made: Purged, neo4j_service: Settings, tmp_path: Path, landed: bool, by: tuple[str, ...]
) -> None:
    world = made.world
    other = World(neo4j_service, tmp_path / "other", "delete", landed=landed, by=by, number=next(_numbers))
    numbers = (3, 9)
    other.execute([one for number, one in enumerate(READINGS) if number not in numbers])
    before = world.results()
    plan = made.plan(*map(world.reading, numbers))
    assert not plan.plan.incomplete
    steps = {step.dataset: step for step in plan.plan.steps}
    assert {steps[one].policy for one in (world.means, world.groups)} == {"recompute"}
    assert all("lanes are made anew" in steps[one].whole for one in (world.means, world.groups))
    certificate = made.apply(plan)
    assert certificate.passed, certificate.findings
    findings = {finding.name: finding for finding in certificate.findings}
    assert findings[f"{world.means}/{world.run} is what its inputs give"].passed is True
    after = world.results()
    assert Counter(after.values()) == Counter(other.results().values())
    for one, line in after.items():
        if one in before and line == before[one]:
            continue
        assert line not in {old for name, old in before.items() if name not in after}
    # Every result is told to be made from just what it is made from where the records never came.
    mine, theirs = ({**w.read(w.source), **w.results()} for w in (world, other))
    assert _by_content(world.ancestors(), mine) == _by_content(other.ancestors(), theirs)
    assert made.graph.forward([world.reading(4)], replay=True).records
    # Again changes nothing; what is not as it should be is found.
    assert apply(world.settings, made.graph, plan.id, PlainEngine()).number == certificate.number
    assert all(finding.passed for finding in made.verify(certificate).values())
    for file in world.version(world.groups).files():
        file.write_bytes(file.read_bytes().replace(b'"value":', b'"valve":'))
    assert made.verify(certificate)[f"{world.groups}/{world.run} is what its inputs give"].passed is False


class DyingError(Exception):
    """As if the process were killed."""


POINTS = ["files written", "version drafted", "all drafted", "version switched", "assertions switched"]


@pytest.mark.parametrize(("landed", "by", "policy"), [(True, ("who",), "recompute")])
@pytest.mark.parametrize("point", [*POINTS, "graphs replaced", "checkpoints forgotten", "purge ended"])
def test_a_purge_that_died_goes_on(
    made: Purged, neo4j_service: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    world = made.world
    other = World(neo4j_service, tmp_path / "other", "delete", landed=True, by=("who",), number=next(_numbers))
    other.execute([one for number, one in enumerate(READINGS) if number != 9])
    plan = made.plan(world.reading(9))
    left = 2 if point in {"files written", "version drafted", "version switched"} else 1  # of several, in their midst

    def die(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if not left:
            raise DyingError

    with monkeypatch.context() as patched:
        patched.setattr("provenance_store.purge.apply.reach", die)
        with pytest.raises(DyingError):
            made.apply(plan)
    certificate = apply(world.settings, made.graph, plan.id, PlainEngine())
    assert certificate.passed, certificate.findings
    assert certificate.forgotten == [world.run]
    assert Counter(world.results().values()) == Counter(other.results().values())
    mine, theirs = ({**w.read(w.source), **w.results()} for w in (world, other))
    assert _by_content(world.ancestors(), mine) == _by_content(other.ancestors(), theirs)


def _by_content(ancestors: dict[str, set[str]], lines: dict[str, bytes]) -> Counter[tuple[bytes, frozenset[bytes]]]:
    return Counter((lines[one], frozenset(lines[source] for source in inputs)) for one, inputs in ancestors.items())
