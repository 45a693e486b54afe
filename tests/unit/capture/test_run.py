"""The run context: one manifest over committed attempts, ascending generations, policies, and reruns."""

from pathlib import Path

import msgspec
import pytest
from pydantic import SecretStr

from provenance_store.errors import InputError, TransportError
from provenance_store.lake import layout
from provenance_store.model.document import read_document
from provenance_store.model.message import Headers, Manifest, Message
from provenance_store.settings import KafkaSettings, Settings
from provenance_store.transport.port import Delivery, Receipt
from provenance_store.transport.recording import RecordingTransport
from spark_apps.capture import counters
from spark_apps.capture.hadoop_job import InputRoot, JobFile, dump_settings
from spark_apps.capture.run import Run, RunResult, count_committed
from spark_apps.capture.writer import Policy, Writer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")


def read_manifests(settings: Settings, topic: str) -> list[Manifest]:
    assert settings.recordings is not None
    source = RecordingTransport(settings.recordings).source(topic)
    return [Manifest.from_bytes(one.message.value) for one in source if one.message.headers.get("kind") == "manifest"]


def test_the_manifest_lists_committed_attempts_alone(settings: Settings) -> None:
    assert settings.recordings is not None
    receipts = RecordingTransport(settings.recordings).receipts()
    receipts.post(Receipt("r1", "a_0/map", 3, "a_0"))
    receipts.post(Receipt("r1", "a_0/combine-1", 2, "a_0"))
    receipts.post(Receipt("r1", "a_1/map", 3, "a_1"))
    receipts.post(Receipt("r2", "a_0/map", 9, "a_0"))
    run = Run(settings, dic="dic", run="r1")
    manifest, sent = run.send_manifest(
        lambda receipts: count_committed(receipts, lambda receipt: receipt.task_attempt == "a_0", run="r1", lost=4)
    )
    assert sent
    assert manifest.attempts == {"a_0/map": 3, "a_0/combine-1": 2, "unreported": 4}
    assert read_manifests(settings, run.topic) == [manifest]


def test_generations_ascend_even_when_the_clock_does_not(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(settings, dic="dic", run="r1")
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000_000)
    generations = [run.send_manifest(lambda _: {})[0].generation for _ in range(3)]
    assert generations == [5000, 5001, 5002]


def test_a_finished_run_is_told_again_and_another_is_refused(settings: Settings) -> None:
    run = Run(settings, dic="dic", run="r1")
    tweets = layout.version_of(settings.lake, "tweets", "v1")
    output = layout.version_of(settings.lake, "counts", "r1")
    assert run.finished([output], [tweets]) is None
    done = RunResult(
        run="r1",
        dic="dic",
        topic=run.topic,
        inputs=["tweets/v1"],
        outputs=["counts/r1"],
        generation=1,
        messages=2,
        writers=1,
    )
    with layout.new_version(output, msgspec.to_builtins(done)):
        pass
    assert run.finished([output], [tweets]) == done
    with pytest.raises(InputError, match=r"read tweets/v1, not tweets/v2: choose another run id"):
        run.finished([output], [layout.version_of(settings.lake, "tweets", "v2")])
    with pytest.raises(InputError, match="never written again"):
        Run(settings, dic="other", run="r1").finished([output], [tweets])


def test_publishing_is_finished_by_the_next_execution(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(settings, dic="dic", run="r1")
    outputs = [layout.version_of(settings.lake, name, "r1") for name in ("one", "two")]
    done = RunResult(
        run="r1", dic="dic", topic="t", inputs=[], outputs=["one/r1", "two/r1"], generation=1, messages=0, writers=0
    )
    written = {layout.unfinished_path(version): version for version in outputs}
    for folder in written:
        folder.mkdir(parents=True)
    publish = layout.publish

    def die_at_the_second(folder: Path, version: layout.Version, about: dict[str, object]) -> None:
        if version.dataset == "two":
            raise KeyboardInterrupt
        publish(folder, version, about)

    monkeypatch.setattr(layout, "publish", die_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run.publish(done, written)
    assert [version.exists() for version in outputs] == [True, False]
    monkeypatch.setattr(layout, "publish", publish)
    assert Run(settings, dic="dic", run="r1").finished(outputs) == done
    assert all(version.exists() for version in outputs)


class BrokenSink:
    def __init__(self, after: int) -> None:
        self.after = after

    def send(self, message: Message) -> None:
        del message
        self.after -= 1
        if self.after < 0:
            raise TransportError("the broker has gone")

    def close(self, timeout: float | None = None) -> Delivery:
        del timeout
        return Delivery(0, 1, "the broker has gone")


class BrokenTransport(RecordingTransport):
    """Its receipts can be left, its messages cannot."""

    opens = True

    def sink(self, topic: str) -> BrokenSink:  # type: ignore[override]
        del topic
        if not self.opens:
            raise TransportError("no broker")
        return BrokenSink(after=1)


def write_three(transport: RecordingTransport, policy: Policy) -> int:
    headers = Headers("r1", "dic", "a_0/map", 0)
    writer = Writer(transport, "topic", headers, task_attempt="a_0", policy=policy)
    for number in range(3):
        members = [f"run:{'x' * 90_000}{n}" for n in range(3)]  # a message each time
        writer.emit(f"run:m{number}", members, ["lake:o/r/p#0"])
    return writer.close()


def test_a_huge_execution_is_told_in_parts(tmp_path: Path) -> None:
    transport = RecordingTransport(tmp_path)
    writer = Writer(transport, "topic", Headers("r1", "dic", "a_0/reduce", 0), task_attempt="a_0")
    writer.emit("run:r0-0", [f"run:m0.{n}" for n in range(100_000)], ["lake:o/r/p#0"])
    assert writer.close() == 0
    messages = [one.message for one in transport.source("topic")]
    assert len(messages) > 1
    told = [edge for message in messages for edge in read_document(message.value)]
    assert {edge.dependency for edge in told} >= {f"urn:run:r1:m0.{n}" for n in range(100_000)}


def test_policy_fail_fails(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="gone"):
        write_three(BrokenTransport(tmp_path), "fail")
    assert BrokenTransport(tmp_path).receipts().gather("r1") == []


@pytest.mark.parametrize("opens", [True, False])
def test_policy_degrade_leaves_a_receipt_over_what_should_have_been(
    tmp_path: Path, opens: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    transport = BrokenTransport(tmp_path)
    transport.opens = opens
    assert write_three(transport, "degrade") == 0
    assert transport.receipts().gather("r1") == [Receipt("r1", "a_0/map", 3, "a_0")]
    assert "provenance will be partial" in capsys.readouterr().err


def test_policy_degrade_without_a_receipt_tells_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise TransportError("no receipts either")

    monkeypatch.setattr("provenance_store.transport.recording.RecordingReceipts.post", refuse)
    assert write_three(BrokenTransport(tmp_path), "degrade") == 3


def test_counters_are_told_once_in_streamings_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    counters.increment("bad")
    counters.increment("bad", 2)
    counters.flush()
    counters.flush()
    assert capsys.readouterr().err == "reporter:counter:Headwater,bad,3\n"


def test_the_job_file_is_private_and_gives_settings_back(tmp_path: Path, settings: Settings) -> None:
    told = settings.model_copy(update={"kafka": KafkaSettings(sasl_password=SecretStr("hidden"), partitions=7)})
    job_file = JobFile(
        run="r1",
        dic="dic",
        topic="headwater.dic",
        policy="fail",
        inputs=[
            InputRoot("tweets", "v1", "/lake/tweets/v1"),
            InputRoot("tweets", "v10", "/lake/tweets/v10", {"a b.jsonl": b"places"}),
        ],
        output_dataset="counts",
        output_version="r1",
        settings=dump_settings(told),
    )
    path = tmp_path / "job.json"
    job_file.write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    read = JobFile.read(path)
    assert read.open_settings() == told
    assert read.input_prefix("file:/lake/tweets/v10/a b.jsonl") == "lake:tweets/v10/a%20b.jsonl#"
    assert read.input_prefix("hdfs://host:8020/lake/tweets/v1/day=1/x") == "lake:tweets/v1/day=1/x#"
    assert read.input_places("file:/lake/tweets/v10/a b.jsonl") == b"places"
    assert read.input_places("hdfs://host:8020/lake/tweets/v1/a b.jsonl") is None
    assert read.output_prefix(12) == "lake:counts/r1/part-00012#"
    with pytest.raises(InputError, match="in none of"):
        read.input_prefix("file:/elsewhere/x")
