"""One long-lived reducer for many topics: each run is finished when it is complete, or has been quiet for long."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provenance_store.model.account import Account
from provenance_store.settings import Settings
from tests.integration.reducer.test_reducer import assert_same, in_library, manifest, send, stream

WHOLE = {"a0": 3, "a1": 3, "a2": 3}


class Service:
    """A reducer that follows topics, in a process of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def finished(self) -> Path:
        """The next folder that it has finished."""
        return Path(next(told["finished"] for told in self._told() if "finished" in told))

    def says(self, words: str) -> str:
        """The next progress with these words in it."""
        return next(told["progress"] for told in self._told() if words in told.get("progress", ""))

    def _told(self) -> Iterator[dict[str, str]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line) if line.startswith(b"{") else {}
            assert "error" not in told, told
            yield told
        raise AssertionError("the service has ended")


@contextmanager
def following(settings: Settings, home: Path, topics: str, out: Path, **reducer: str) -> Iterator[Service]:
    environment = {
        **os.environ,
        **{f"HEADWATER_REDUCER__{name.upper()}": value for name, value in reducer.items()},
        "HEADWATER_KAFKA__BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "HEADWATER_HOME": str(home),
        "HEADWATER_JVM": str(settings.jvm),
    }
    command = [sys.executable, "-m", "spark_apps.reducer", f"--topic={topics}", f"--out={out}", "--follow", "--quiet=8"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield Service(process)
        finally:
            process.kill()


def test_runs_of_many_topics_are_finished_as_they_end(kafka_service: Settings, tmp_path: Path) -> None:
    whole = [*stream("whole", lake=True, seed=31), manifest("whole", WHOLE)]
    late = [*stream("late", lake=True, seed=32), manifest("late", WHOLE)]
    endless = stream("endless", lake=True, seed=33)
    send(kafka_service, "service.one", late[:4])
    send(kafka_service, "service.two", whole)
    out, home = tmp_path / "out", tmp_path / "home"
    with following(kafka_service, home, "service.*", out) as service:
        assert service.finished() == out / "whole"
        assert_same(out / "whole", Account.read(out / "whole"), in_library(whole)["whole"])
        send(kafka_service, "service.one", late[4:])
        folder = service.finished()
        if Account.read(folder).verdict != "complete":  # it was quiet for long before the rest was sent
            folder = service.finished()
        assert folder == out / "late"
        assert_same(out / "late", Account.read(out / "late"), in_library(late)["late"])
        service.process.kill()
    written = (out / "late" / "account.json").stat().st_mtime_ns
    # Started again it goes on: a topic that is new, a run without a manifest, and nothing done twice.
    send(kafka_service, "service.three", endless)
    with following(kafka_service, home, "service.*", out) as service:
        assert service.finished() == out / "endless"
        assert Account.read(out / "endless").verdict == "unknown"
        assert_same(out / "endless", Account.read(out / "endless"), in_library(endless)["endless"])
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(timeout=60) == 0
    assert (out / "late" / "account.json").stat().st_mtime_ns == written


def test_a_finished_run_is_freed_and_its_graph_outlives_what_comes_too_late(
    kafka_service: Settings, tmp_path: Path
) -> None:
    whole = [*stream("whole", lake=True, seed=41), manifest("whole", WHOLE)]
    again = [*stream("whole", lake=True, seed=42), manifest("whole", WHOLE, generation=1)]
    out, home = tmp_path / "out", tmp_path / "home"
    send(kafka_service, "freed.one", whole)
    with following(kafka_service, home, "freed.one", out, keep_finished_hours="0.0001", metrics_port="0") as service:
        metrics = service.says("metrics on ").split()[-1]
        assert service.finished() == out / "whole"
        service.says("freed what was kept of 1 finished runs")
        (parts,) = home.glob("reducer/*/parts")
        assert [*parts.iterdir()] == []
        send(kafka_service, "freed.one", [whole[0]])
        assert "freed, before 1 more of its messages came" in service.says("run whole was finished")
        assert_same(out / "whole", Account.read(out / "whole"), in_library(whole)["whole"])
        with urllib.request.urlopen(metrics) as answer:  # noqa: S310 - our own server
            assert 'headwater_too_late_total{topic="freed.one"} 1.0' in answer.read().decode()
        service.says("freed what was kept of 1 finished runs")
        service.process.kill()
    # Also after a restart; and a run that is executed again, under its id, is a new one.
    send(kafka_service, "freed.one", [whole[0]])
    with following(kafka_service, home, "freed.one", out) as service:
        service.says("run whole was finished")
        assert_same(out / "whole", Account.read(out / "whole"), in_library(whole)["whole"])
        send(kafka_service, "freed.one", again)
        assert service.finished() == out / "whole"
        account = Account.read(out / "whole")
        assert (account.verdict, account.generation) == ("complete", 1)
