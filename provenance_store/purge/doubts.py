"""Why the lake graph may not know all that was made from records: sentences for the plan and its reader."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from provenance_store.graph.consequences import KnownRun
from provenance_store.graph.liveness import LiveCount
from provenance_store.model.message import STREAM
from provenance_store.purge.plan import Step
from provenance_store.purge.reaching import Reached
from provenance_store.purge.versions import Made


def find_doubts(
    reached: Reached,
    steps: Iterable[Step],
    made: Mapping[str, Made],
    runs: Mapping[str, KnownRun],
    live: Iterable[LiveCount] = (),
    *,
    asserted: Collection[str] = (),
) -> Iterator[str]:
    """Nothing, where provenance is complete, and none of the records may still lead to anything."""
    crossed = {run.run for run in reached.runs} | {step.run for step in steps if step.run in runs and step.run}
    told = {run.run for run in reached.runs if run.verdict == "complete"}
    for name in sorted(crossed):
        known = runs.get(name)
        # Of a stream's run the lake graph knows versions; where its assertions tell of records, nothing is in doubt.
        is_told = name in told or (name in asserted and known is not None and not known.live)
        if not (known and STREAM in known.marks and is_told):
            yield from _of_run(name, known)
    for count in live:
        yield from _of_live(count)
    for one in made.values():
        yield from _of_version(one, runs.get(one.run or ""))
    if reached.foreign:
        yield (
            f"{len(reached.foreign):,} records were reached whose ids name no place in the lake, {reached.foreign[0]} "
            "for one: a purge leaves them as they are."
        )


def _of_run(name: str, run: KnownRun | None) -> Iterator[str]:
    if run is None or run.revision is None:
        yield f"Run {name} was pruned from the lake graph: what it made is not known. Merge its reduced graph again."
    elif run.declared:
        yield f"Run {name} of {run.dic} was only declared: which records it made from which is not known."
    elif run.live:
        yield (
            f"Run {name} of {run.dic} goes on, and what it has made so far may not be in the lake yet: stop and finish "
            f"the run, `headwater merge` it, and plan again."
        )
    elif run.verdict != "complete":
        yield f"What the lake graph knows of run {name} of {run.dic} is {run.verdict}."


def _of_live(count: LiveCount) -> Iterator[str]:
    what_to_do = (
        "wait until they have expired (`headwater streams live ID`), or stop and finish the run and `headwater merge` "
        "it; then plan again."
    )
    if live := count.counts.get("live"):
        yield (
            f"{live:,} of the records are live in run {count.run} of {count.query}, {count.examples['live']} for one: "
            f"more will be made from them. Either {what_to_do}"
        )
    if unsure := count.counts.get("unsure"):
        yield (
            f"{unsure:,} of the records are not surely expired in run {count.run} of {count.query}, "
            f"{count.examples['unsure']} for one: the run reads their dataset, has not told of them, and may still "
            f"make something from them. Stop and finish the run, `headwater merge` it, and plan again."
        )


def _of_version(made: Made, run: KnownRun | None) -> Iterator[str]:
    if made.run is None:
        return
    if run is None:
        yield (
            f"{made.reference} was made by run {made.run}, of which the lake graph has no graph: reduce and merge the "
            "run."
        )
    elif run.revision is not None and run.generation < made.generation:
        yield (
            f"{made.reference} was made by a later execution of run {made.run} than the lake graph knows: reduce and "
            "merge the run again."
        )
