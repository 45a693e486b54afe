"""What becomes of each version: by the policy of its dataset, and by what happens to the versions it was made from.

Versions are gone through with inputs before outputs, because what is done to an input tells what may change in an
output: where a record goes away, only what was made from it changes; where one changes, or new ones may come, others
may, and then the whole version is made anew.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import msgspec
import polars as pl

from provenance_store.errors import InputError
from provenance_store.graph.consequences import KnownRun
from provenance_store.lake.catalogue import Catalogue, Dataset, Hold, Recompute, Redact
from provenance_store.lake.contents import count_records
from provenance_store.purge.plan import Action, Held, Step
from provenance_store.purge.reaching import Reached
from provenance_store.purge.streams import StreamRuns
from provenance_store.purge.versions import Made


@dataclass(frozen=True, slots=True)
class Decided:
    """The steps, inputs before outputs, and what holds them up."""

    steps: list[Step]
    holds: list[Held]


@dataclass(frozen=True, slots=True)
class _Change:
    """What a step does to a version, as those who read it see it."""

    # New records may come, and any may change.
    is_whole: bool = False
    # Records change, in these columns alone, or in all but those.
    altered: frozenset[str] = frozenset()
    kept: frozenset[str] | None = None

    @property
    def alters(self) -> bool:
        return bool(self.altered) or self.kept is not None

    def may_alter(self, columns: Iterable[str]) -> bool:
        return any(column in self.altered or (self.kept is not None and column not in self.kept) for column in columns)


@dataclass(slots=True)
class _Counts:
    selected: int = 0
    reached: int = 0
    is_declared: bool = False


@dataclass(slots=True)
class Steps:
    """Decides of all versions; `decide` tells the result."""

    catalogue: Catalogue
    made: Mapping[str, Made]
    runs: Mapping[str, KnownRun]
    streams: StreamRuns
    _changes: dict[str, _Change] = field(default_factory=dict)

    def decide(self, reached: Reached) -> Decided:
        """What becomes of every version that has touched records, or may get others."""
        touched = _count(reached)
        self._check_declared({reference.partition("/")[0] for reference in touched})
        steps: list[Step] = []
        held: dict[str, Held] = {}
        for reference in _in_order(self.made):
            made, counts = self.made[reference], touched.get(reference, _Counts())
            told = self.catalogue.datasets.get(made.version.dataset)
            if told is None:
                continue
            if isinstance(told.policy, Hold):
                _hold(held, made, told.policy, counts)
            elif step := self._step(made, told, counts, reached.absent.get(reference, 0)):
                steps.append(step)
        return Decided(_agreed(steps), [held[dataset] for dataset in sorted(held)])

    def _step(self, made: Made, told: Dataset, counts: _Counts, absent: int) -> Step | None:
        is_touched = counts.selected or counts.reached or counts.is_declared
        policy, whole = self._policy(made, told, counts)
        if not is_touched and not whole:
            return None
        if policy == "recompute":
            self._check_inputs(made)
        self._changes[made.reference] = _change(told, policy, whole=whole)
        lanes = self.streams.lanes(made.run) if policy == "recompute" and made.is_stream and made.run else []
        return Step(
            dataset=made.version.dataset,
            version=made.version.name,
            policy=policy,
            run=made.run,
            dic=made.dic,
            inputs=list(made.inputs),
            selected=counts.selected,
            reached=counts.reached,
            records=count_records(made.version, told),
            absent=absent,
            whole=whole,
            subtracts=policy == "recompute" and not whole and bool(told.sums) and self._only_loses(made),
            reads=sum(map(self._count_input, made.inputs)) if policy == "recompute" and whole and not lanes else 0,
            lanes=lanes,
        )

    def _policy(self, made: Made, told: Dataset, counts: _Counts) -> tuple[Action, str]:
        declared = "A job that was only declared made it, so any of its records may be touched." * counts.is_declared
        match told.policy:
            case Redact():
                return "redact", declared
            case Recompute() if made.is_stream and made.inputs:
                return self._policy_of_stream(made, counts)
            case Recompute():
                affected = bool(counts.reached or counts.is_declared)
                whole = next(self._reasons(made, told, is_affected=affected), "") if made.run else ""
                if affected and not made.run:
                    raise InputError(
                        f"{made.reference} has records to be made anew, and no captured run made it: give its dataset "
                        f"another policy in {self.catalogue.path}, or replace the version by one that a run makes."
                    )
                return ("recompute", declared or whole) if affected or whole else ("delete", "")
            case _:
                return "delete", declared

    def _policy_of_stream(self, made: Made, counts: _Counts) -> tuple[Action, str]:
        """Results of a stream change where an event of their lane does, whether or not any was made from it."""
        changed = {one: self._changes[one] for one in made.inputs if one in self._changes}
        run = made.run or ""
        if not (changed or counts.reached or counts.is_declared) or not (lanes := self.streams.lanes(run)):
            return "delete", ""
        self.streams.check_can_be_remade(run, self.catalogue)
        for one, change in changed.items():
            decisive = self.streams.fields_of(run, one.partition("/")[0])
            if change.is_whole or change.may_alter(decisive):
                raise InputError(
                    f"{made.reference} cannot be made anew: in {one}, which run {run} read, records come or change in "
                    f"what decides when they take part. Give {made.version.dataset!r} another policy in "
                    f"{self.catalogue.path}."
                )
        return "recompute", (
            f"A stream query made it, where windows and numbers move when an event is taken away: {len(lanes):,} of "
            f"{len(self.streams.open(run).lanes()):,} lanes are made anew from their beginning."
        )

    def _reasons(self, made: Made, told: Dataset, *, is_affected: bool) -> Iterator[str]:
        """Why more of a version may change than the records that were reached; sentences."""
        changed = {one: self._changes[one] for one in made.inputs if one in self._changes}
        run = self.runs.get(made.run or "")
        if changed or is_affected:
            if run is None or run.revision is None:
                yield f"The lake graph has no graph of run {made.run}, so any of its records may be touched."
            elif run.verdict != "complete":
                yield f"What is known of run {made.run} is {run.verdict}, so any of its records may be touched."
            elif run.marks:
                yield (
                    f"Run {made.run} crossed {' and '.join(sorted(run.marks))}, where taking a record away can make "
                    "new ones."
                )
        for one, change in changed.items():
            if change.is_whole:
                yield f"It was made from {one}, which is made anew as a whole."
            elif change.alters:
                yield from _undecided(told, one, change)
        if is_affected and not told.key:
            yield "The catalogue tells no key by which its records could be told apart when they are made anew."

    def _only_loses(self, made: Made) -> bool:
        """Whether records of its inputs go away, and none changes or comes."""
        changes = (self._changes[one] for one in made.inputs if one in self._changes)
        return not any(change.is_whole or change.alters for change in changes)

    def _check_declared(self, datasets: set[str]) -> None:
        if unknown := sorted(datasets - self.catalogue.datasets.keys()):
            raise InputError(
                f"Records of {' and '.join(map(repr, unknown))} are touched, and {self.catalogue.path} does not tell "
                "what a purge may do with them: tell format and policy there."
            )

    def _check_inputs(self, made: Made) -> None:
        for one in made.inputs:
            if one not in self.made:
                raise InputError(
                    f"{made.reference} cannot be made anew: {one}, from which run {made.run} made it, is no longer in "
                    f"the lake. Put it back, or give {made.version.dataset!r} another policy in {self.catalogue.path}."
                )
            self.catalogue.of(self.made[one].version.dataset)
        if not made.inputs:
            raise InputError(
                f"{made.reference} cannot be made anew: run {made.run} made it from nothing that is in the lake. Give "
                f"{made.version.dataset!r} another policy in {self.catalogue.path}."
            )

    def _count_input(self, reference: str) -> int:
        version = self.made[reference].version
        return count_records(version, self.catalogue.of(version.dataset))


def _agreed(steps: list[Step]) -> list[Step]:
    """The outputs of a run are made anew together, so all of them are subtracted from, or none."""
    others = {step.run for step in steps if step.policy == "recompute" and not step.subtracts}
    return [msgspec.structs.replace(step, subtracts=step.subtracts and step.run not in others) for step in steps]


def _count(reached: Reached) -> dict[str, _Counts]:
    counted = reached.rows.group_by("dataset", "version").agg(pl.col("selected").sum(), pl.len())
    found = {
        f"{dataset}/{version}": _Counts(selected, every - selected)
        for dataset, version, selected, every in counted.iter_rows()
    }
    for version in reached.declared:
        found.setdefault(version.reference, _Counts()).is_declared = True
    return found


def _in_order(made: Mapping[str, Made]) -> list[str]:
    """Versions, the inputs of each before itself."""
    sorter = TopologicalSorter({one: [i for i in made[one].inputs if i in made] for one in sorted(made)})
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise InputError(f"Versions were made from each other, by their markers: {', '.join(error.args[1])}.") from None


def _change(told: Dataset, policy: Action, *, whole: str) -> _Change:
    if policy == "recompute":
        return _Change(is_whole=bool(whole), kept=frozenset(told.key))
    if policy == "redact" and isinstance(told.policy, Redact):
        return _Change(altered=frozenset(told.policy.fields))
    return _Change()


def _undecided(told: Dataset, source: str, change: _Change) -> Iterator[str]:
    dataset = source.partition("/")[0]
    decided_by = told.policy.decided_by if isinstance(told.policy, Recompute) else {}
    if dataset not in decided_by:
        yield f"Records of {source} change, and the catalogue does not tell which of their columns decide here."
    elif change.may_alter(decided_by[dataset]):
        yield f"Records of {source} change in columns that decide which record they go to."


def _hold(held: dict[str, Held], made: Made, policy: Hold, counts: _Counts) -> None:
    records = counts.selected + counts.reached
    if records or counts.is_declared:
        dataset = made.version.dataset
        before = held[dataset].records if dataset in held else 0
        held[dataset] = Held(dataset, policy.who, policy.why, before + records)
