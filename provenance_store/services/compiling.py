"""Java of our own, compiled once into a jar that is named after what it was compiled from."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from provenance_store.errors import ServiceError
from provenance_store.services import jvm
from provenance_store.services.locks import locked
from provenance_store.services.service import Say
from provenance_store.settings import Settings

_TIMEOUT_SECONDS = 300.0


def compiled(settings: Settings, name: str, sources: Sequence[Path], classpath: str, say: Say) -> Path:
    """The jar of these sources, from which the next process takes it as it is."""
    stamp = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = settings.jvm.absolute() / name
    jar = folder / f"headwater-{name}-{stamp}.jar"
    if jar.exists():
        return jar
    with locked(folder.with_name(f".{name}.lock"), timeout_seconds=_TIMEOUT_SECONDS, say=say):
        if not jar.exists():
            say(f"compiling the Java side of {name} (once)")
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                _compile(name, sources, classpath, Path(scratch), jar)
    return jar


def _compile(name: str, sources: Sequence[Path], classpath: str, scratch: Path, jar: Path) -> None:
    classes, tools = scratch / "classes", jvm.java_home() / "bin"
    # Java 17 is the oldest that runs here; the jar must load there wherever it was compiled.
    command = [str(tools / "javac"), "--release", "17", "-nowarn", "-cp", classpath, "-d", str(classes)]
    _run(name, [*command, *map(str, sources)])
    _run(name, [str(tools / "jar"), "--create", "--file", str(scratch / jar.name), "-C", str(classes), "."])
    shutil.move(scratch / jar.name, jar)


def _run(name: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise ServiceError(f"The Java side of {name} does not compile with {command[0]}:\n{done.stderr[-3000:]}")
