"""Java of our own is compiled once, again when it changed, and what does not compile is told."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from provenance_store.errors import ServiceError
from provenance_store.services.compiling import compiled
from provenance_store.settings import Settings


def test_compiled_once(tmp_path: Path) -> None:
    settings, said = Settings(home=tmp_path, jvm=tmp_path / "jvm"), []
    source = tmp_path / "One.java"
    source.write_text("package some; public class One {}")
    jar = compiled(settings, "some", [source], "", said.append)
    assert "some/One.class" in ZipFile(jar).namelist()
    assert compiled(settings, "some", [source], "", said.append) == jar
    assert said == ["compiling the Java side of some (once)"]
    source.write_text("package some; public class One { int two; }")
    assert compiled(settings, "some", [source], "", said.append) != jar
    assert len(said) == 2


def test_what_does_not_compile_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "One.java"
    source.write_text("public class Two {}")
    with pytest.raises(ServiceError, match=r"some does not compile (.|\n)*One\.java"):
        compiled(Settings(home=tmp_path, jvm=tmp_path / "jvm"), "some", [source], "", lambda _: None)
    assert list((tmp_path / "jvm" / "some").iterdir()) == []
