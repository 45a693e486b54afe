"""Does what an approved plan says: killed anywhere and begun again, it ends with the same lake.

First every version that changes is drafted beside itself, the inputs before what was made from them; whatever is made
anew reads drafts. Nothing in the lake has changed by then. Then all drafts are switched with their versions, the lake
graph is told, and what was removed is buried.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

from provenance_store.errors import InputError
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.catalogue import Catalogue
from provenance_store.lake.drafts import begin_draft, discard, draft_of, switch
from provenance_store.lake.layout import Version, resolve, version_of
from provenance_store.model.failpoints import reach
from provenance_store.model.files import in_turn, write_whole
from provenance_store.purge import edits, folders
from provenance_store.purge.approval import check_may_begin, read_approval
from provenance_store.purge.burial import bury
from provenance_store.purge.certificate import Certificate, issue
from provenance_store.purge.done import StepDone
from provenance_store.purge.edits import Edit, Edits
from provenance_store.purge.fingerprints import fingerprint_records
from provenance_store.purge.journal import Journal
from provenance_store.purge.plan import Step, StoredPlan, open_plan
from provenance_store.purge.remaking import Remaking, Rerun
from provenance_store.purge.stream_steps import StreamSteps
from provenance_store.purge.verify import verify
from provenance_store.settings import Settings

Say = Callable[[str], None]
Task = tuple[Version, str, Edit, Version]


class Engine(Protocol):
    """What a purge leaves to Spark, or does in its own process where little is to be done."""

    def rewrite(self, tasks: Sequence[Task]) -> None:
        """Write files of drafts, each as its edit says."""

    @property
    def rerun(self) -> Rerun:
        """Runs DICs anew."""


def apply(settings: Settings, graph: LakeGraph, name: str, engine: Engine, say: Say = lambda _: None) -> Certificate:
    """Follow an approved plan to its certificate; begun again, it goes on where it was."""
    stored = open_plan(settings.lake, name)
    approval = read_approval(stored)
    with _alone(settings, stored):
        journal = _begin(settings, graph, stored)
        if journal.ended is None:
            purge = _Purge(settings, graph, stored, journal, engine=engine, say=say)
            purge.draft()
            purge.switch()
            purge.tell_graph()
            purge.forget()
            journal.note_end()
        reach("purge ended")
        done = list(journal.done.values())
        say("verifying")
        findings = verify(settings, graph, stored, done)
        return issue(settings, stored, approval, done, findings, journal.began, journal.ended or "", journal.forgotten)


@contextmanager
def _alone(settings: Settings, stored: StoredPlan) -> Iterator[None]:
    """Have the datasets of a plan: of two purges of one dataset, the second is refused."""
    with ExitStack() as held:
        for dataset in sorted({step.dataset for step in stored.plan.steps}):
            try:
                held.enter_context(in_turn(folders.work_folder(settings) / "locks" / dataset, wait=False))
            except BlockingIOError:
                raise InputError(
                    f"Another purge of dataset {dataset!r} is running: wait for its certificate, then try again."
                ) from None
        yield


def _begin(settings: Settings, graph: LakeGraph, stored: StoredPlan) -> Journal:
    """The journal to go on with; a plan must hold until versions are switched."""
    journal = Journal.open(stored)
    if journal is not None and journal.is_switching:
        return journal
    try:
        check_may_begin(settings, graph, stored)
    except InputError:
        if journal is not None:
            _give_up(settings, stored, journal)
        raise
    return journal or Journal.begin(stored)


def _give_up(settings: Settings, stored: StoredPlan, journal: Journal) -> None:
    for step in stored.plan.steps:
        discard(draft_of(version_of(settings.lake, step.dataset, step.version), stored.id))
    StreamSteps(settings, stored, lambda reference: resolve(settings.lake, reference)).discard()
    journal.give_up()


class _Purge:
    def __init__(
        self, settings: Settings, graph: LakeGraph, stored: StoredPlan, journal: Journal, *, engine: Engine, say: Say
    ) -> None:
        self._settings = settings
        self._graph = graph
        self._stored = stored
        self._journal = journal
        self._engine = engine
        self._say = say
        self._catalogue = Catalogue.load(settings.lake)
        self._remaking = Remaking(settings, graph, stored, rerun=engine.rerun, current=self._current)
        self._streams = StreamSteps(settings, stored, self._current)

    def draft(self) -> None:
        """Draft every version that changes."""
        if self._journal.is_switching:
            return
        fingerprint_records(self._settings, self._stored)
        reach("fingerprints kept")
        for number, step in enumerate(self._stored.plan.steps, start=1):
            if step.reference not in self._journal.done:
                self._say(f"{number} of {len(self._stored.plan.steps)}: {step.reference}, {step.policy}")
                self._journal.note_draft(self._draft(step))
                reach("version drafted")
        self._journal.note_switching()
        reach("all drafted")

    def switch(self) -> None:
        """Switch every draft with its version; what the version was is removed."""
        for step in self._stored.plan.steps:
            switch(self._version(step), draft_of(self._version(step), self._stored.id))
            reach("version switched")
        self._streams.switch()
        reach("assertions switched")
        for step in self._stored.plan.steps:
            discard(draft_of(self._version(step), self._stored.id))
            reach("old version removed")

    def tell_graph(self) -> None:
        """Replace the graphs of runs that were made anew whole, and bury what was removed."""
        self._remaking.merge()
        for run in self._streams.runs():
            self._graph.forget_assertions(run)
        reach("graphs replaced")
        bury(self._settings, self._graph, self._stored)
        self._remaking.clean()

    def forget(self) -> None:
        """Remove what streams keep of events to replay from."""
        self._journal.note_forgotten(self._streams.forget())
        reach("checkpoints forgotten")

    def _draft(self, step: Step) -> StepDone:
        version = self._version(step)
        draft = begin_draft(version, self._stored.id)
        made = self._edits(step, version)
        self._engine.rewrite([(version, file, edit, draft) for file, edit in made.by_file.items()])
        for name, lines in made.new.items():
            write_whole(draft.path / name, b"".join(line + b"\n" for line in lines))
        reach("files written")
        self._remaking.note(step, made, draft)
        return made.done

    def _edits(self, step: Step, version: Version) -> Edits:
        told = self._catalogue.of(step.dataset)
        records = self._stored.records(step)
        if step.policy == "delete":
            return edits.delete(step, told, records)
        if step.policy == "redact":
            return edits.redact(step, told, records, version)
        if step.lanes:
            return self._streams.edits(step)
        return edits.recompute(step, told, records, version, self._remaking.remake(step))

    def _version(self, step: Step) -> Version:
        return version_of(self._settings.lake, step.dataset, step.version)

    def _current(self, reference: str) -> Version:
        """A version as it will be: its draft, where it is drafted."""
        version = version_of(self._settings.lake, *reference.split("/", 1))
        return draft_of(version, self._stored.id) if reference in self._journal.done else version
