"""What a purge does to the results of streams that are made anew, and to what else is kept of a run's events."""

from collections.abc import Iterable, Iterator

from provenance_store.lake.layout import version_of
from provenance_store.lake.rewriting import LineEdit
from provenance_store.model.ids import file_prefix
from provenance_store.purge.done import StepDone
from provenance_store.purge.edits import Edits
from provenance_store.purge.plan import Step, StoredPlan, open_plan
from provenance_store.settings import Settings
from provenance_store.streams import checkpoints, remaking
from provenance_store.streams.remaking import Changes, Remaking
from provenance_store.streams.runs import Open, StreamRun


class StreamSteps:
    """The steps of a plan that make results of streams anew. `current` tells a version as it will be."""

    def __init__(self, settings: Settings, stored: StoredPlan, current: Open) -> None:
        self._settings = settings
        self._stored = stored
        self._current = current
        self._made: dict[str, dict[tuple[str, str], Changes]] = {}

    def edits(self, step: Step) -> Edits:
        """What a step does; what is new goes into a file of its own."""
        run = step.run or ""
        if run not in self._made:
            self._made[run] = self._make(run)
        changes = self._made[run].get((step.dataset, step.version), Changes())
        removed = {file: set(positions) for file, positions in changes.removed.items()}
        selected = self._stored.records(step).filter("selected")
        for file, position in selected.select("file", "position").rows():
            removed.setdefault(file, set()).add(position)
        files = sorted({*removed, *changes.changed})
        count = sum(map(len, removed.values()))
        done = StepDone(
            dataset=step.dataset,
            version=step.version,
            deleted=len(selected),
            recomputed=sum(map(len, changes.changed.values())),
            vanished=count - len(selected),
            appended=len(changes.appended),
        )
        edits = {
            file: LineEdit(removed=sorted(removed.get(file, ())), changed=changes.changed.get(file, {}))
            for file in files
        }
        return Edits(done, dict(edits), new={self._file: changes.appended} if changes.appended else {})

    def switch(self) -> None:
        """Put the keys that were drafted in the place of those of runs that were made anew."""
        for run in self.runs():
            remaking.switch(self._settings.lake, run, self._stored.id)

    def discard(self) -> None:
        """Remove what was drafted."""
        for run in self.runs():
            remaking.discard(self._settings.lake, run, self._stored.id)

    def forget(self) -> list[str]:
        """Remove what is kept of events to replay from, of all runs that took in touched records; these runs."""
        for run in self._stored.plan.forgets:
            checkpoints.forget(self._settings.home, run)
        return self._stored.plan.forgets

    @property
    def _file(self) -> str:
        return f"part-{self._stored.id}.jsonl"

    def _steps(self, run: str) -> list[Step]:
        return [step for step in self._stored.plan.steps if step.run == run and step.lanes]

    def runs(self) -> list[str]:
        """The runs whose results are made anew."""
        return sorted({step.run for step in self._stored.plan.steps if step.lanes and step.run})

    def _make(self, run: str) -> dict[tuple[str, str], Changes]:
        lake, steps = self._settings.lake, self._steps(run)
        opened = StreamRun(lake, run)
        versions: dict[str, list[str]] = {sink.dataset: [] for sink in opened.query.sinks}
        for step in steps:
            versions[step.dataset].append(step.version)
        made = Remaking(
            opened,
            sorted({lane for step in steps for lane in step.lanes}),
            versions=versions,
            new=self._file,
            named={one for step in steps for one in self._named(step)},
            open_version=self._current,
        )
        return made.run(remaking.draft_of(lake, run, self._stored.id))

    def _named(self, step: Step) -> Iterator[str]:
        """The ids of results in a version that people selected, for this purge or one before."""
        version = version_of(self._settings.lake, step.dataset, step.version)
        for purge in dict.fromkeys([*version.marker().get("purged", []), self._stored.id]):
            records = open_plan(self._settings.lake, purge).records(step).filter("selected")
            for file, position in records.select("file", "position").rows():
                yield f"{file_prefix(step.dataset, step.version, file)}{position}"


def of_run(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """The steps that make results of streams anew, by run and dataset, which may have several versions of a run."""
    found: dict[tuple[str | None, str], list[Step]] = {}
    for step in steps:
        if step.lanes:
            found.setdefault((step.run, step.dataset), []).append(step)
    yield from found.values()
