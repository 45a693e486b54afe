"""The run context of a job's driver: run id, topic, and the one manifest at the end.

Retry is safe by order: the engine writes to a hidden folder; when it has succeeded, receipts are gathered and the
manifest is sent; only then does the output get its name as a version. Whatever dies on the way leaves no version, and
executing the run again does all of it again under a higher generation, which replaces the earlier one. Once the version
is there the run is finished: executing it again with the same inputs changes nothing and tells what was done, and with
other inputs is refused. A failed job sends no manifest.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from provenance_store.errors import InputError, JobError, TransportError
from provenance_store.lake import layout
from provenance_store.model.files import write_whole
from provenance_store.model.ids import check_run
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.services.locks import locked
from provenance_store.settings import Settings
from provenance_store.transport.port import Receipt
from provenance_store.transport.wiring import make_topics, open_driver_transport, topic_of
from spark_apps.capture.writer import Policy

# The driver's own receipt: its count is the generation of the last manifest that it was about to send.
_DRIVER = "driver"
_LOCK_SECONDS = 3600.0


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished run tells; kept in its version's marker, so it can be told again."""

    run: str
    dic: str
    topic: str
    inputs: list[str]
    outputs: list[str]
    generation: int
    messages: int
    writers: int
    counters: dict[str, int] = {}
    manifest_sent: bool = True
    seconds: float = 0.0


class Run:
    """One execution of a DIC under a run id."""

    def __init__(self, settings: Settings, *, dic: str, run: str, policy: Policy = "fail") -> None:
        self.run = check_run(run)
        self.dic = dic
        self.policy: Policy = policy
        self.topic = topic_of(dic)
        self.folder: Path = settings.home.absolute() / "runs" / run
        self._journal = self.folder / "publish.json"
        self._settings = settings
        self._transport = open_driver_transport(settings)
        self._opening: Future[list[Receipt]] | None = None

    @contextmanager
    def alone(self, say: Callable[[str], None]) -> Iterator[None]:
        """Hold the run: two drivers of one run on one machine go one after the other."""
        with locked(self.folder / "lock", timeout_seconds=_LOCK_SECONDS, say=say), closing(self._transport):
            yield

    def finished(
        self, outputs: Sequence[layout.Version], inputs: Sequence[layout.Version] | None = None
    ) -> RunResult | None:
        """What this run did, if it is finished; InputError if a version there is of something else."""
        self._finish_publishing()
        there = [output for output in outputs if output.exists()]
        if not there:
            return None
        try:
            done = msgspec.convert(there[0].marker(), RunResult)
        except msgspec.ValidationError:
            done = None
        if done is None or (done.run, done.dic) != (self.run, self.dic) or len(there) < len(outputs):
            layout.refuse_existing(there[0])
        elif inputs is not None and done.inputs != [version.reference for version in inputs]:
            raise InputError(
                f"Run {self.run!r} is finished and read {', '.join(done.inputs)}, not "
                f"{', '.join(version.reference for version in inputs)}: choose another run id."
            )
        return done

    def publish(self, result: RunResult, written: Mapping[Path, layout.Version]) -> None:
        """Give what was written its names as versions: all of them, also when this process dies between two."""
        moves = [(str(folder), version.dataset, version.name, str(version.path)) for folder, version in written.items()]
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._journal, msgspec.json.encode(_Journal(result, moves)))
        self._finish_publishing()

    def _finish_publishing(self) -> None:
        try:
            journal = msgspec.json.decode(self._journal.read_bytes(), type=_Journal)
        except FileNotFoundError:
            return
        for folder, dataset, name, path in journal.moves:
            if Path(folder).exists():
                version = layout.Version(dataset, name, Path(path))
                layout.publish(Path(folder), version, msgspec.to_builtins(journal.result))
        self._journal.unlink()

    @staticmethod
    def next_generation() -> int:
        """A generation later than any before, as far as this machine's clock knows."""
        return time.time_ns() // 1_000_000

    def open_topic(self) -> None:
        """Make the run's topic where it is not there yet, before many tasks ask for it at once."""
        make_topics(self._settings, self.topic, required=self.policy == "fail")

    def open_early(self) -> None:
        """Connect while the job runs, for an engine that brings its receipts home itself.

        What a driver needs at the end is several round trips to the broker, which would be waited for one by one.
        """
        pool = ThreadPoolExecutor(1, "headwater-driver")
        self._opening = pool.submit(self._open)
        pool.shutdown(wait=False)

    def _open(self) -> list[Receipt]:
        gathered = self._transport.receipts().gather(self.run)
        self._transport.sink(self.topic).close()
        return gathered

    def send_manifest(
        self, count: Callable[[list[Receipt]], dict[str, int]], *, marks: Sequence[str] = ()
    ) -> tuple[Manifest, bool]:
        """Send the manifest over what `count` makes of the writers' receipts; whether it was sent.

        Generations ascend strictly: a millisecond clock, corrected by the last one.
        """
        manifest = Manifest(attempts={}, generation=self.next_generation(), marks=list(marks))
        try:
            receipts = self._transport.receipts()
            opening, self._opening = self._opening, None
            gathered = receipts.gather(self.run) if opening is None else opening.result()
            last = max((one.messages for one in gathered if one.attempt == _DRIVER), default=-1)
            manifest = Manifest(
                attempts=count([one for one in gathered if one.attempt != _DRIVER]),
                generation=max(last + 1, manifest.generation),
                marks=manifest.marks,
            )
            receipts.post(Receipt(self.run, _DRIVER, manifest.generation))
            headers = Headers(self.run, self.dic, _DRIVER, 0, function=MANIFEST, kind=MANIFEST)
            sink = self._transport.sink(self.topic)
            sink.send(Message.of(headers, manifest.to_bytes()))
            sink.close().check()
        except TransportError:
            if self.policy == "fail":
                raise
            return manifest, False
        return manifest, True


class _Journal(msgspec.Struct, frozen=True, array_like=True):
    """What is being published: the folders with the dataset, version and path that each becomes."""

    result: RunResult
    moves: list[tuple[str, str, str, str]]


def count_committed(
    receipts: Sequence[Receipt],
    is_committed: Callable[[Receipt], bool],
    *,
    run: str,
    expected: Collection[str] = (),
    lost: int = 0,
) -> dict[str, int]:
    """What each writer of a committed attempt sent.

    Every task attempt in `expected` must have left a receipt. `lost` messages are of committed writers without one;
    they are listed under a name that nothing was sent by, so the account misses them.
    """
    attempts = {one.attempt: one.messages for one in receipts if is_committed(one)}
    if lost:
        attempts["unreported"] = lost
    elif silent := set(expected) - {one.task_attempt for one in receipts}:
        raise JobError(
            f"{len(silent)} attempts that the engine committed left no receipt, {min(silent)} for one, so what "
            f"they sent is unknown. No manifest was sent: execute run {run} again."
        )
    return attempts
