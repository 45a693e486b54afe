"""Killed with -9 at any moment and started again, a reducer gives the same, and counts nothing twice.

Each start takes a JVM's, so by default one reduction is killed at moment after moment until it may end. With
`HEADWATER_TEST_KILLS=20` twenty reductions are killed once each, at twenty moments.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import polars as pl
import pytest

from provenance_store.model.account import Account
from provenance_store.model.failpoints import VARIABLE
from provenance_store.model.message import Message
from provenance_store.reduction.exact import Reduced
from provenance_store.settings import Settings
from tests.integration.reducer.test_reducer import in_library, manifest, send, stream

KILLS = int(os.environ.get("HEADWATER_TEST_KILLS", "0"))
# Between the write of state and its commit, between the commit and Spark's own, and around the result.
STEPS = ["parts written:1", "rejected sent:1", "batch recorded:2", "graph written:1", "run finished:1"]
MOMENTS = [*STEPS, "batch recorded:1", "parts written:3", "parts written:2", "rejected sent:3", "batch recorded:3"]
# Between two batches it says a line; a kill by the clock comes at most so many seconds after one of the first of them.
LINES, LONGEST = 5, 0.7


def start(settings: Settings, home: Path, topic: str, out: Path, failpoint: str = "") -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        "HEADWATER_KAFKA__BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "HEADWATER_HOME": str(home),
        "HEADWATER_JVM": str(settings.jvm),
        "HEADWATER_REDUCER__MESSAGES_PER_BATCH": "6",
        VARIABLE: failpoint,
    }
    command = [sys.executable, "-m", "spark_apps.reducer", f"--topic={topic}", f"--out={out}"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def finish(settings: Settings, home: Path, topic: str, out: Path, expected: Reduced) -> None:
    process = start(settings, home, topic, out)
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 0, told
    account = Account.read(out)
    assert msgspec.structs.replace(account, seconds=0.0) == msgspec.structs.replace(expected.account, seconds=0.0)
    assert pl.read_parquet(out / "graph.parquet").sort("input", "output").equals(expected.graph)


def messages() -> list[Message]:
    poison = Message({"run": "r", "attempt": "a0", "seq": "0"}, b"{ poison")
    made = [*stream("r", lake=True, seed=21, attempts=6), poison, manifest("r", {f"a{n}": 3 for n in range(5)})]
    random.Random(5).shuffle(made)
    return made


def test_a_reducer_killed_at_every_step_gives_the_same(kafka_service: Settings, tmp_path: Path) -> None:
    topic, sent = "reducer.killed", messages()
    send(kafka_service, topic, sent)
    expected = in_library(sent)["r"]
    assert expected.graph.height > 0
    home, out = tmp_path / "home", tmp_path / "out"
    for moment in STEPS:
        process = start(kafka_service, home, topic, out, moment)
        told, _ = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, (moment, told)
    finish(kafka_service, home, topic, out, expected)


if KILLS:

    @pytest.mark.parametrize("number", range(KILLS))
    def test_a_reducer_killed_once_gives_the_same(kafka_service: Settings, tmp_path: Path, number: int) -> None:
        topic, sent = f"reducer.once-{number}", messages()
        send(kafka_service, topic, sent)
        expected = in_library(sent)["r"]
        home, out = tmp_path / "home", tmp_path / "out"
        if number % 2:
            moment = MOMENTS[number // 2 % len(MOMENTS)]
            process = start(kafka_service, home, topic, out, moment)
            told, _ = process.communicate(timeout=300)
        else:
            # Somewhere within what follows one of its lines: the reading of a batch, or the contraction.
            lines, seconds = number // 2 % LINES, random.Random(number).uniform(0.0, LONGEST)
            moment = f"{seconds:.2f} s after line {lines}"
            process = start(kafka_service, home, topic, out)
            assert process.stdout is not None
            for line in process.stdout:
                if b"reading topic" in line:
                    break
            told = b"".join(process.stdout.readline() for _ in range(lines))
            time.sleep(seconds)
            process.kill()
            process.communicate(timeout=300)
        print(f"killed at {moment}; it had said last: {(told.splitlines() or [b'that it reads'])[-1].decode()}")
        assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
        finish(kafka_service, home, topic, out, expected)
