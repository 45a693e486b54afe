"""The Java side of capture, compiled once from the sources beside this file against Spark's own jars."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from provenance_store.errors import ServiceError, SettingsError
from provenance_store.services import jvm
from provenance_store.services.locks import locked
from provenance_store.services.service import Say
from provenance_store.settings import Settings

_SOURCES = Path(__file__).resolve().parent / "jvm"
_TIMEOUT_SECONDS = 300.0


def capture_jars(settings: Settings, say: Say) -> list[Path]:
    """The compiled jar and the Kafka client that it and Spark's Kafka source need."""
    jvm.fetch(settings, "spark", say)
    return [_compiled(settings, say), *jvm.jars(settings, "spark")]


def _compiled(settings: Settings, say: Say) -> Path:
    sources = sorted(_SOURCES.rglob("*.java"))
    stamp = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = settings.jvm.absolute() / "capture"
    jar = folder / f"headwater-capture-{stamp}.jar"
    if jar.exists():
        return jar
    with locked(folder.with_name(".capture.lock"), timeout_seconds=_TIMEOUT_SECONDS, say=say):
        if not jar.exists():
            say("compiling the Java side of capture (once)")
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                _compile(settings, sources, Path(scratch), jar)
    return jar


def _compile(settings: Settings, sources: list[Path], scratch: Path, jar: Path) -> None:
    classpath = os.pathsep.join([str(spark_jars() / "*"), jvm.classpath(settings, "spark")])
    classes = scratch / "classes"
    tools = jvm.java_home() / "bin"
    # Java 17 is the oldest that runs here; the jar must load there wherever it was compiled.
    _run([str(tools / "javac"), "--release", "17", "-nowarn", "-cp", classpath, "-d", str(classes), *map(str, sources)])
    _run([str(tools / "jar"), "--create", "--file", str(scratch / jar.name), "-C", str(classes), "."])
    shutil.move(scratch / jar.name, jar)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise ServiceError(f"The Java side of capture does not compile with {command[0]}:\n{done.stderr[-3000:]}")


def spark_jars() -> Path:
    """The folder of pyspark's own jars."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SettingsError("pyspark is not installed in this environment: run `make setup`.")
    return Path(spec.origin).parent / "jars"
