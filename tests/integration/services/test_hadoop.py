import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from provenance_store.services import jvm, lifecycle
from provenance_store.services.hadoop import Hadoop, client_conf_dir
from provenance_store.settings import Settings
from tests.services_fixtures import is_gone, running


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Not the session's cluster: this one is stopped by its test."""
    with running(tmp_path_factory.mktemp("home"), "hadoop") as settings:
        yield settings


def client(settings: Settings, *words: str) -> str:
    classpath = f"{client_conf_dir(settings)}:{jvm.classpath(settings, 'hadoop')}"
    done = subprocess.run(
        [jvm.java(), "-cp", classpath, *words], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_streaming_job_on_yarn(mine: Settings, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{number}\n" for number in range(1000)))
    job = ("-input", f"file://{lines}", "-output", "/counted", "-mapper", "/bin/cat", "-reducer", "/usr/bin/wc -l")
    client(mine, "org.apache.hadoop.streaming.HadoopStreaming", "-Dmapreduce.job.reduces=1", *job)
    assert client(mine, "org.apache.hadoop.fs.FsShell", "-cat", "/counted/part-*").split()[-1] == "1000"

    service = Hadoop(mine)
    pid = lifecycle.status(service).pid
    assert pid is not None
    lifecycle.down(service, print)
    assert is_gone(pid)
    assert service.left_behind() == []
