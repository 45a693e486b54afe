"""The Java we run on, and the jars of each JVM part, fetched once by Maven as `infra/pom.xml` says."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from provenance_store.errors import InputError, ServiceError
from provenance_store.services.locks import locked
from provenance_store.services.service import Say
from provenance_store.settings import CHECKOUT, Settings

INFRA = CHECKOUT / "infra"
SUPPORTED = (17, 21)
_STAMP = ".stamp"
_PROFILE = re.compile(r"<profile>\s*<id>(?P<part>[\w-]+)</id>.*?</profile>", re.DOTALL)
_MAVEN_TIMEOUT_SECONDS = 1800.0
_MAVEN_LINES = 15


@cache
def java_home() -> Path:
    """A JDK that Spark, Kafka, Neo4j and Hadoop all run on: `JAVA_HOME`, then `PATH`, then the system's."""
    found = {home: _java_version(home) for home in _candidates()}
    for home, version in found.items():
        if version in SUPPORTED and (home / "bin" / "javac").exists():
            return home
    seen = ", ".join(f"Java {version or '?'} in {home}" for home, version in found.items()) or "no Java at all"
    raise ServiceError(
        f"A JDK {' or '.join(map(str, SUPPORTED))} is needed and there is {seen}. "
        "Install one (openjdk-17-jdk-headless on Debian) or point JAVA_HOME at it."
    )


def java() -> str:
    """The `java` command of that JDK."""
    return str(java_home() / "bin" / "java")


def _candidates() -> Iterator[Path]:
    named, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    if named:
        yield Path(named)
    if on_path:
        yield Path(on_path).resolve().parent.parent
    yield from sorted(path for path in Path("/usr/lib/jvm").glob("*") if (path / "bin" / "java").exists())


def _java_version(home: Path) -> int | None:
    try:
        told = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(\d+)', told.stderr)
    return int(version[1]) if version else None


def parts() -> dict[str, str]:
    """Every part of the pom with its stamp, which changes when the part's profile does."""
    pom = INFRA / "pom.xml"
    if not pom.exists():
        raise ServiceError(f"{pom} is missing: local services run from a checkout of Headwater, not from a wheel.")
    text = pom.read_text()
    shared = _PROFILE.sub("", text).partition("<modelVersion>")[2]
    shared = "".join(re.sub(r"<!--.*?-->", "", shared, flags=re.DOTALL).split())
    return {
        found["part"]: hashlib.sha256((shared + "".join(found[0].split())).encode()).hexdigest()
        for found in _PROFILE.finditer(text)
    }


def fetch(settings: Settings, part: str, say: Say) -> Path:
    """The folder with the part's jars; Maven fills it the first time, and again when the pom's part has changed."""
    stamp = parts().get(part)
    if stamp is None:
        raise InputError(f"There is no JVM part {part}. The parts are {', '.join(parts())}.")
    folder = settings.jvm.absolute() / part
    if _is_current(folder, stamp):
        return folder
    with locked(settings.jvm.absolute() / f".{part}.lock", timeout_seconds=_MAVEN_TIMEOUT_SECONDS, say=say):
        if _is_current(folder, stamp):
            return folder
        say(f"fetching the jars of {part} with Maven into {folder} (once)")
        with tempfile.TemporaryDirectory(dir=settings.jvm, prefix=f".{part}.", ignore_cleanup_errors=True) as scratch:
            fresh, old = Path(scratch) / "fresh", Path(scratch) / "old"
            _run_maven(part, fresh)
            (fresh / _STAMP).write_text(stamp + "\n")
            if folder.exists():
                folder.rename(old)
            fresh.rename(folder)
    return folder


def jars(settings: Settings, part: str) -> list[Path]:
    """The part's jars, which must have been fetched."""
    folder = settings.jvm.absolute() / part
    if not _is_current(folder, parts().get(part, "")):
        raise ServiceError(f"The jars of {part} are not in {folder}: run `headwater fetch {part}` first.")
    return sorted(folder.glob("*.jar"))


def classpath(settings: Settings, part: str) -> str:
    """The part as Java's `-cp` takes it; it must have been fetched."""
    return str(jars(settings, part)[0].parent / "*")


def _is_current(folder: Path, stamp: str) -> bool:
    try:
        return (folder / _STAMP).read_text().strip() == stamp
    except FileNotFoundError:
        return False


def _run_maven(part: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServiceError("Maven fetches the JVM parts and `mvn` is not on PATH: install Maven 3.8 or later.")
    command = [maven, "--batch-mode", "--quiet", f"--file={INFRA / 'pom.xml'}", f"--activate-profiles={part}"]
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    environment = {**os.environ, "JAVA_HOME": str(java_home())}
    try:
        done = subprocess.run(
            command + goal,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_MAVEN_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServiceError(
            f"Maven did not fetch {part} within {_MAVEN_TIMEOUT_SECONDS:.0f} s. "
            f"Check the network, then run `headwater fetch {part}` again: what has come is kept."
        ) from None
    if done.returncode != 0 or not any(folder.glob("*.jar")):
        lines = "\n".join(f"  {line}" for line in deque(done.stdout.splitlines(), _MAVEN_LINES))
        raise ServiceError(
            f"Maven could not fetch {part}. Check the network, or a mirror in ~/.m2/settings.xml, "
            f"then run `headwater fetch {part}` again. It said:\n{lines}"
        )
