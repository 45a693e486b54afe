"""Whether all that was made in the lake is known to the lake graph, and whether all runs that began have ended."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol

from provenance_store.graph.consequences import KnownRun
from provenance_store.graph.retention import Pruned
from provenance_store.health.finding import Fault
from provenance_store.purge.versions import list_made
from provenance_store.settings import Settings


class Graph(Protocol):
    """What has to be known of the lake graph; `LakeGraph` does."""

    def runs(self) -> list[KnownRun]:
        """All runs that it has a graph of, or had before it was pruned."""

    def prune(self, *, before: datetime | None = None, dataset: str | None = None, dry_run: bool = False) -> Pruned:
        """What retention would remove."""


def find_incomplete(settings: Settings, graph: Graph) -> Iterator[Fault]:
    """Runs of which the graph lacks something, and versions that a captured run made and the graph knows nothing of.

    Of a stream query that is running nobody expects all yet.
    """
    known = {run.run: run for run in graph.runs()}
    for run in sorted(known.values(), key=lambda run: run.run):
        if run.revision is not None and run.verdict != "complete" and not (run.declared or run.live):
            yield Fault(run.run, f"what the lake graph knows of this run of {run.dic} is {run.verdict}.")
    for made in list_made(settings.lake).values():
        if made.run is None:
            continue
        of_it = known.get(made.run)
        if of_it is None:
            yield Fault(made.reference, f"run {made.run} made it, and its graph was never merged: reduce and merge it.")
        elif of_it.revision is not None and of_it.generation < made.generation:
            yield Fault(
                made.reference, f"a later execution of run {made.run} made it than was merged: reduce it again."
            )


def find_unended(settings: Settings, *, hours: float) -> Iterator[Fault]:
    """Runs that began longer ago, and have neither written a version nor said anything since."""
    ended = {made.run for made in list_made(settings.lake).values()}
    before = (datetime.now(UTC) - timedelta(hours=hours)).timestamp()
    folder = settings.home.absolute() / "runs"
    for run in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not run.is_dir() or run.name in ended:
            continue
        last = max((path.stat().st_mtime for path in (run, *run.iterdir())), default=run.stat().st_mtime)
        if last < before:
            when = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
            yield Fault(run.name, f"it began and never ended; it was last heard of on {when}. Execute it again.")


def find_overdue(settings: Settings, graph: Graph) -> Iterator[Fault]:
    """Runs that are older than the setting `retention.days`, and are still in the lake graph."""
    if settings.retention.days is None:
        return
    limit = datetime.now(UTC) - timedelta(days=settings.retention.days)
    for run in graph.prune(before=limit, dry_run=True).runs:
        yield Fault(
            run.run, f"it was merged on {run.merged_at:%Y-%m-%d}, and may be kept {settings.retention.days} days."
        )
