from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from provenance_store.errors import InputError, ServiceError
from provenance_store.services import jvm
from provenance_store.settings import Settings

POM = """<project><modelVersion>4.0.0</modelVersion>
<profiles>
<profile><id>one</id><a>{one}</a></profile>
<profile>
  <id>two</id><a>2</a></profile>
</profiles></project>"""
MAVEN = """#!/bin/sh
echo run >> "$COUNT"
for word; do case $word in -DoutputDirectory=*) out=${word#*=};; esac; done
mkdir -p "$out" && sleep 0.3 && echo jar > "$out/$MARK.jar" && echo "it said this" && exit $RESULT
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (tmp_path / "infra").mkdir()
    (tmp_path / "bin").mkdir()
    maven = tmp_path / "bin" / "mvn"
    maven.write_text(MAVEN)
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setenv("MARK", "first")
    monkeypatch.setenv("RESULT", "0")
    monkeypatch.setattr(jvm, "INFRA", tmp_path / "infra")
    monkeypatch.setattr(jvm, "java_home", lambda: tmp_path / "jdk")
    write_pom(tmp_path, one="1")
    return Settings(home=tmp_path / "home", jvm=tmp_path / "jvm")


def write_pom(root: Path, *, one: str) -> None:
    (root / "infra" / "pom.xml").write_text(POM.format(one=one))


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_the_real_pom_has_the_four_parts_and_names_no_registry() -> None:
    assert list(jvm.parts()) == ["kafka", "neo4j", "hadoop", "spark"]
    assert len(set(jvm.parts().values())) == 4
    assert "<repositor" not in (jvm.INFRA / "pom.xml").read_text()


@pytest.mark.usefixtures("world")
def test_a_stamp_changes_with_its_own_part_only(tmp_path: Path) -> None:
    before = jvm.parts()
    write_pom(tmp_path, one="changed")
    after = jvm.parts()
    assert before["one"] != after["one"]
    assert before["two"] == after["two"]


def test_fetch_runs_maven_once_and_again_only_after_a_change(
    world: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with pytest.raises(ServiceError, match="headwater fetch one"):
        jvm.classpath(world, "one")
    assert jvm.fetch(world, "one", said.append) == tmp_path / "jvm" / "one"
    assert len(said) == 1
    jvm.fetch(world, "one", said.append)
    assert len(said) == 1
    assert (tmp_path / "count").read_text() == "run\n"
    assert jvm.classpath(world, "one") == str(tmp_path / "jvm" / "one" / "*")
    monkeypatch.setenv("MARK", "second")
    write_pom(tmp_path, one="changed")
    jvm.fetch(world, "one", said.append)
    assert [jar.name for jar in jvm.jars(world, "one")] == ["second.jar"]
    assert visible(tmp_path / "jvm") == ["one"]


def test_several_at_once_fetch_once(world: Settings, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: jvm.fetch(world, "one", lambda _: None), range(4)))
    assert folders == {tmp_path / "jvm" / "one"}
    assert (tmp_path / "count").read_text() == "run\n"


def test_a_failed_fetch_leaves_nothing_and_says_why(
    world: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESULT", "1")
    with pytest.raises(ServiceError, match=r"(?s)could not fetch one.*it said this"):
        jvm.fetch(world, "one", lambda _: None)
    assert visible(tmp_path / "jvm") == []
    monkeypatch.setenv("RESULT", "0")
    jvm.fetch(world, "one", lambda _: None)
    assert visible(tmp_path / "jvm") == ["one"]


def test_an_unknown_part_and_a_missing_maven_are_named(world: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no JVM part three.*one, two"):
        jvm.fetch(world, "three", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServiceError, match="install Maven"):
        jvm.fetch(world, "two", lambda _: None)


def fake_jdk(folder: Path, version: str, *, compiler: bool = True) -> Path:
    (folder / "bin").mkdir(parents=True)
    for name in ["java", "javac"] if compiler else ["java"]:
        (folder / "bin" / name).write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        (folder / "bin" / name).chmod(0o755)
    return folder


def test_java_home_comes_first_and_a_wrong_one_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, runtime = fake_jdk(tmp_path / "old", "11.0.2"), fake_jdk(tmp_path / "jre", "17.0.1", compiler=False)
    good = fake_jdk(tmp_path / "good", "21.0.3")
    monkeypatch.setenv("PATH", f"{good / 'bin'}:/usr/bin:/bin")
    for named in (old, runtime, good):
        monkeypatch.setenv("JAVA_HOME", str(named))
        assert jvm.java_home.__wrapped__() == good
    monkeypatch.setattr(jvm, "_candidates", lambda: iter([old, runtime]))
    with pytest.raises(ServiceError, match=r"JDK 17 or 21 is needed.*Java 11 in .*old.*JAVA_HOME"):
        jvm.java_home.__wrapped__()
    monkeypatch.setattr(jvm, "_candidates", lambda: iter([]))
    with pytest.raises(ServiceError, match="no Java at all"):
        jvm.java_home.__wrapped__()
