from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import prov.model
import pytest
from pyspark import TaskContext

from provenance_store.errors import InputError, JobError, TransportError
from provenance_store.model.document import compact, read_document
from provenance_store.model.message import Message
from provenance_store.settings import KafkaSettings, Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture import rdd_feeds as feeds
from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.rdd_keys import GroupNames
from spark_apps.capture.rdd_sinks import SinkAddress
from spark_apps.capture.rdd_taps import TellLines, TellMembers, TellPartition
from spark_apps.capture.rdd_writer import BATCH, TaskInfo, TaskWriter
from spark_apps.capture.writer import Policy

CHAIN = feeds.Chain(feeds.tokened, ())
NAMES = GroupNames(b"secret", "op-1")


class Receipts(dict[str, int]):
    """Stands in for the accumulator: its `add` is that."""

    def add(self, found: dict[str, int]) -> None:
        self.update(found)


class World:
    """A task's surroundings: what it knows, and what it has sent and left."""

    def __init__(self, folder: Path, files: int = 1) -> None:
        self.folder = folder
        self.receipts = Receipts()
        self.files = {f"f{n}": f"urn:lake:in/v1/{n}.txt#" for n in range(files)}
        self.info = self.told_to(Settings(home=folder, recordings=folder), "fail")

    def told_to(self, settings: Settings, policy: Policy) -> TaskInfo:
        address: Any = SinkAddress.of(settings, "t", policy)
        receipts: Any = self.receipts
        return TaskInfo("r1", "d", address, "nonce", b"secret", receipts, self.files)

    def sent(self) -> list[Message]:
        return [one.message for one in RecordingSource(self.folder / "t")]

    def edges(self) -> set[tuple[str, str, str]]:
        found = [edge for message in self.sent() for edge in read_document(message.value)]
        return {(edge.relation, compact(edge.dependent), compact(edge.dependency)) for edge in found}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    numbers = {"stageId": 3, "partitionId": 5, "attemptNumber": 0, "taskAttemptId": 17}
    context = SimpleNamespace(**{name: lambda number=number: number for name, number in numbers.items()})
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    return World(tmp_path)


def test_members_are_told_of_their_group_and_values_go_on_untouched(world: World) -> None:
    tap = TellMembers(world.info, "op-1", NAMES, CHAIN, whole=False)
    rows = [("f0:0", ("a", 1)), ("f0:9", ["a", 2]), ("f0:9", ("a", 2)), (("f0:4", "run:gX"), ("b", 3)), ((), ("c", 4))]
    assert list(tap(0, rows)) == [value for _, value in rows]
    told = {
        ("hadMember", f"urn:run:r1:{NAMES.of(key)[4:]}", member)
        for key, member in [
            ("a", "lake:in/v1/0.txt#0"),
            ("a", "lake:in/v1/0.txt#9"),
            ("b", "lake:in/v1/0.txt#4"),
            ("b", "urn:run:r1:gX"),
        ]
    }
    assert world.edges() == told
    assert list(world.receipts.values()) == [1]
    headers = world.sent()[0].headers
    assert headers["attempt"] in world.receipts
    assert (headers["task"], headers["function"], headers["seq"]) == ("s3-p5", "op-1", "0")


def test_what_is_sent_is_read_by_the_prov_library(world: World) -> None:
    list(TellMembers(world.info, "op-1", NAMES, CHAIN, whole=True)(0, [("f0:0", "a"), ("f0:2", "a")]))
    (message,) = world.sent()
    document = prov.model.ProvDocument.deserialize(content=message.value.decode(), format="json")
    assert len(list(document.get_records())) == 2


def test_many_members_become_many_messages_none_too_large(world: World) -> None:
    count = 3 * BATCH + 17
    tap = TellMembers(world.info, "op-1", NAMES, CHAIN, whole=True)
    for _ in tap(0, ((f"f0:{n}", n % 5000) for n in range(count))):
        pass
    messages = world.sent()
    assert max(len(message.value) for message in messages) < 900_000
    assert list(world.receipts.values()) == [len(messages)]
    assert sorted(int(message.headers["seq"]) for message in messages) == list(range(len(messages)))
    assert len(world.edges()) == count


@pytest.mark.parametrize("files", [2, 20, 500])
def test_ids_mean_the_same_however_many_files_there_are(world: World, files: int) -> None:
    more = World(world.folder, files)
    rows = [(f"f{n % files}:{n}", n % 3) for n in range(2000)]
    list(TellMembers(more.info, "op-1", NAMES, CHAIN, whole=True)(0, iter(rows)))
    list(TellLines(more.info, "save-1", CHAIN, "urn:lake:out/r1/", ".txt")(7, iter(rows)))
    assert {member for _, _, member in more.edges()} == {f"lake:in/v1/{n % files}.txt#{n}" for n in range(2000)}
    assert max(len(message.value) for message in more.sent()) < 900_000


def test_a_partition_is_told_whole_also_where_the_function_stops_early(world: World) -> None:
    def first(_: int, found: Iterator[str]) -> Iterator[str]:
        yield next(found)
        found.close()  # type: ignore[attr-defined]  # a generator's

    tap = TellPartition(world.info, "op-1", NAMES, CHAIN, first, settled=True)
    assert list(tap(4, [("f0:0", "a"), ("f0:2", "b"), ("f0:4", "c")])) == [(NAMES.of(4), "a")]
    assert {member for _, _, member in world.edges()} == {f"lake:in/v1/0.txt#{n}" for n in (0, 2, 4)}


def test_a_partition_that_may_come_out_otherwise_is_named_after_its_attempt(world: World) -> None:
    def same(_: int, found: Iterator[str]) -> Iterator[str]:
        return found

    names = set()
    for _ in range(2):
        tap = TellPartition(world.info, "op-1", NAMES, CHAIN, same, settled=False)
        names |= {name for name, _ in tap(4, [("f0:0", "a")])}
    assert len(names) == 2


def test_lines_are_known_by_the_offset_of_their_bytes(world: World) -> None:
    rows = [("f0:0", "é"), ("f0:3", ""), (("f0:4", "f0:9"), 12), ((), b"xy"), ("f0:11", "last")]
    lines = list(TellLines(world.info, "save-1", CHAIN, "urn:lake:out/r1/", ".txt.gz")(7, rows))
    assert lines == ["é".encode(), b"", b"12", b"xy", b"last"]
    place = "lake:out/r1/part-00007.txt.gz#"
    told = [(0, 0), (3, 3), (4, 4), (4, 9), (10, 11)]
    assert world.edges() == {("wasDerivedFrom", f"{place}{out}", f"lake:in/v1/0.txt#{put}") for out, put in told}


@pytest.mark.parametrize(("value", "told"), [("a\nb", "line break"), (b"\xff", "not UTF-8")])
def test_what_cannot_be_a_line_is_refused(world: World, value: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        list(TellLines(world.info, "save-1", CHAIN, "urn:lake:out/r1/", ".txt")(0, [("f0:0", value)]))
    assert not world.receipts


def test_a_key_that_cannot_be_named_fails_its_task(world: World) -> None:
    with pytest.raises(UnsupportedOperationError, match="a key of type"):
        list(TellMembers(world.info, "op-1", NAMES, CHAIN, whole=False)(0, [("f0:0", (1j, 1))]))
    assert not world.receipts


def test_who_does_not_read_to_the_end_gets_no_receipt(world: World) -> None:
    values = TellMembers(world.info, "op-1", NAMES, CHAIN, whole=True)(0, [("f0:0", "a"), ("f0:2", "b")])
    next(values)
    values.close()  # type: ignore[attr-defined]  # a generator's
    assert not world.receipts


def test_nothing_to_tell_leaves_no_receipt(world: World) -> None:
    assert list(TellMembers(world.info, "op-1", NAMES, CHAIN, whole=True)(0, [])) == []
    assert not world.receipts


def test_two_writers_of_one_task_are_two_attempts(world: World) -> None:
    assert TaskWriter(world.info, "op-1", 0).attempt != TaskWriter(world.info, "op-1", 0).attempt


def test_outside_a_task_nothing_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", lambda: None)
    with pytest.raises(JobError, match="outside a task"):
        TaskWriter(World(tmp_path).info, "op-1", 0)


NOBODY = KafkaSettings(bootstrap_servers="127.0.0.1:9", timeout_seconds=0.5)


def test_a_dead_broker_fails_the_task(world: World) -> None:
    info = world.told_to(Settings(home=world.folder, kafka=NOBODY), "fail")
    with pytest.raises(TransportError):
        list(TellMembers(info, "op-1", NAMES, CHAIN, whole=True)(0, [("f0:0", "a")]))
    assert not world.receipts


def test_or_the_receipt_counts_what_should_have_been_sent(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    info = world.told_to(Settings(home=world.folder, kafka=NOBODY), "degrade")
    for _ in range(2):  # the second does not even try
        assert list(TellMembers(info, "op-1", NAMES, CHAIN, whole=True)(0, [("f0:0", "a")])) == ["a"]
    assert list(world.receipts.values()) == [1, 1]
    told = capsys.readouterr().err
    assert told.count("provenance will be partial") == 2
    assert "Not tried again yet" in told
