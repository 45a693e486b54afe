"""A backup holds the lake graph of one moment; restored elsewhere, every answer is the same."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import GraphError, InputError, UnknownRecordError
from provenance_store.graph import backup as backup_module
from provenance_store.graph import restore as restore_module
from provenance_store.graph.audit import Audit
from provenance_store.graph.backup import Manifest
from provenance_store.graph.connection import Connection
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.schema import RESTORING, SCHEMA_VERSION, STEPS, ensure_schema
from provenance_store.model.ids import RecordId, hash_key
from provenance_store.model.keys import KeyRing
from provenance_store.settings import Settings
from tests.live_stream import tell_stream
from tests.services_fixtures import running

FIRST = (Path(__file__).parent / "schema_1_lake.cypher").read_text()
ALL_EDGES = (
    "MATCH (o:Record)-[e:WAS_DERIVED_FROM]->(i:Record) RETURN o.id, o.dataset, i.id, i.dataset, e.run ORDER BY {}"
)
RUNS = "MATCH (r:Run) WHERE r.dic IS NOT NULL RETURN r.id, properties(r), labels(r) ORDER BY r.id"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Not the session's Neo4j: what is in this one is removed and put back."""
    with running(tmp_path_factory.mktemp("home"), "neo4j") as settings:
        yield settings


@pytest.fixture
def lake(service: Settings) -> Settings:
    wipe(service)
    return service


def wipe(settings: Settings) -> None:
    """As if the database were a new one."""
    connection = Connection(settings)
    connection.write(lambda tx: tx.run("MATCH (n) DETACH DELETE n").consume())
    connection.close()


def fill(graph: LakeGraph, reduced, seed: int = 1) -> list[str]:
    """Some runs that build on each other, one replaced and one declared; the ids that they name."""
    rng = random.Random(seed)
    names = [f"lake:d{n % 4}/1#{n}" for n in range(60)] + ["x:outside"]
    for number in range(4):
        pairs = {tuple(rng.sample(names, 2)) for _ in range(40)}
        graph.merge(reduced(f"run-{number}", pairs, verdict=rng.choice(["complete", "unknown"])))
    graph.merge(reduced("run-0", {tuple(rng.sample(names, 2)) for _ in range(30)}, generation=1))
    return sorted({row[0] for row in graph.cypher("MATCH (r:Record) RETURN r.id").rows})


def everything(graph: LakeGraph) -> dict[str, object]:
    lasting = [
        [run, {k: v for k, v in known.items() if k != "unclean"}, sorted(labels)]
        for run, known, labels in graph.cypher(RUNS).rows
    ]
    listed = (
        "MATCH (b:Batch) UNWIND b.relationships AS n MATCH ()-[e]->() "
        "WHERE id(e) = n AND e.run = b.run AND e.revision = b.revision RETURN count(DISTINCT e)"
    )
    return {
        "edges": graph.cypher(ALL_EDGES.format("o.id, i.id, e.run")).rows,
        "records": graph.cypher("MATCH (r:Record) RETURN r.id, properties(r) ORDER BY r.id").rows,
        "runs": lasting,
        "versions": graph.cypher("MATCH (v:Version) RETURN v.id, properties(v) ORDER BY v.id").rows,
        "datasets": graph.datasets(),
        "listed": graph.cypher(listed).rows,
    }


def answers(graph: LakeGraph, ids: list[str]) -> list[bytes]:
    return [ask([one]).to_json() for one in ids for ask in (graph.backward, graph.forward)]


def test_there_and_back(lake: Settings, reduced, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(backup_module, "PAGE", 20)
    monkeypatch.setattr(backup_module, "_ROWS", 50)
    monkeypatch.setattr(restore_module, "PART", 60)
    with LakeGraph(lake) as graph:
        fill(graph, reduced)
        # What was pruned is remembered on the records and versions that are left.
        graph.merge(reduced("old", [("lake:gone/1#g", "lake:d0/1#0"), ("lake:gone/1#g", "lake:d1/1#1")]))
        assert len(graph.prune(dataset="gone").runs) == 1
        ids = [row[0] for row in graph.cypher("MATCH (r:Record) RETURN r.id ORDER BY r.id").rows][::6]
        assert graph.forward(["lake:d0/1#0"]).verdict == "partial"
        whole = everything(graph)
        # What is half-way in is not in the backup.
        connection = Connection(lake)
        connection.write(lambda tx: tx.run("CREATE (:Run {id: 'half', staged_revision: 1, revisions: 1})").consume())
        connection.write(
            lambda tx: tx.run(
                "MATCH (r:Record {id: $id}) CREATE (:Record {id: 'lake:half/1#h', dataset: 'half'})"
                "-[:WAS_DERIVED_FROM {run: 'half', revision: 1}]->(r)",
                id=ids[0],
            ).consume()
        )
        connection.close()
        told: list[int] = []
        manifest = graph.backup(tmp_path / "copy", tell=told.append)
        before = answers(graph, ids)
        assert told[-1] == manifest.files["edges.parquet"].rows
        assert manifest.schema == SCHEMA_VERSION
    wipe(lake)
    with LakeGraph(lake) as graph:
        parts: list[tuple[int, int]] = []
        graph.restore(tmp_path / "copy", progress=lambda done, total: parts.append((done, total)))
        assert parts[-1] == (told[-1], told[-1])
        assert answers(graph, ids) == before
        with pytest.raises(UnknownRecordError, match="pruned"):
            graph.backward(["lake:gone/1#g"])
        assert everything(graph) == whole
        # It is a lake graph like any other: a run can be replaced.
        assert graph.merge(reduced("run-0", [("lake:d0/1#0", "lake:d1/1#1")], generation=2)).replaced
        runs = {
            row[0] for row in graph.cypher("MATCH ()-[e:WAS_DERIVED_FROM {run: 'run-0'}]->() RETURN e.revision").rows
        }
        assert runs == {3}

        with pytest.raises(InputError, match="there already"):
            graph.backup(tmp_path / "copy")


def test_a_running_query_is_kept_as_far_as_it_was_told(lake: Settings, reduced, tmp_path: Path, monkeypatch) -> None:
    """It goes on while the backup is taken; restored, it is what was met of it, and says that this is not all."""
    messages = tell_stream("live", 0, random.Random(2), ends=False)
    with LakeGraph(lake) as graph:
        graph.merge(reduced("run-0", [("lake:d0/1#0", "lake:d1/1#1")]))
        graph.apply_live(messages[:-3])
        pages = backup_module._pages

        def pages_while_it_goes_on(connection):
            for page in pages(connection):
                yield page
                graph.apply_live(messages)

        monkeypatch.setattr(backup_module, "PAGE", 5)
        monkeypatch.setattr(backup_module, "_pages", pages_while_it_goes_on)
        manifest = graph.backup(tmp_path / "copy")
        graph.restore(tmp_path / "copy", replace=True)
        (kept,) = graph.cypher("MATCH ()-[e:WAS_DERIVED_FROM {run: 'live'}]->() RETURN count(e)").rows[0]
        assert kept == manifest.files["edges.parquet"].rows - 1
        facts = graph.describe_run("live")
        assert (facts.verdict, facts.live, facts.watermark, facts.edges) == ("partial", False, None, kept)
        assert [feed.edges for feed in graph.datasets() if feed.source == "live-in"] == [kept]
        assert graph.live_runs() == []
        assert graph.cypher("MATCH (p:LiveProgress) RETURN p").rows == []
        # What was told between the backup and now is not in it, so nothing more is taken in.
        assert graph.apply_live(messages).late == len(messages)
        finished = [("lake:live-out/live", "lake:live-in/live")]
        assert graph.merge(reduced("live", finished, verdict="unknown", marks=["declared", "stream"])).replaced
        assert graph.cypher("MATCH ()-[e:WAS_DERIVED_FROM {run: 'live'}]->() RETURN count(e)").rows == [[1]]


def test_a_lake_graph_is_replaced_only_where_that_was_asked_for(lake: Settings, reduced, tmp_path: Path) -> None:
    with LakeGraph(lake) as graph:
        with pytest.raises(InputError, match="nothing to back up"):
            graph.backup(tmp_path / "copy")
        ids = fill(graph, reduced)
        graph.backup(tmp_path / "copy")
        before = everything(graph)
    wipe(lake)
    with LakeGraph(lake) as graph:
        graph.merge(reduced("other", [("lake:other/1#a", "lake:other/1#b")]))
        with pytest.raises(InputError, match="--replace"):
            graph.restore(tmp_path / "copy")
        assert len(graph.backward(["lake:other/1#a"]).records) == 1
        graph.restore(tmp_path / "copy", replace=True)
        assert everything(graph) == before
        assert graph.backward([ids[0]])
        # Restored again, it is a lake graph that is there.
        with pytest.raises(InputError, match="--replace"):
            graph.restore(tmp_path / "copy")
    assert not list(tmp_path.glob(".copy*"))


def test_the_graph_of_a_later_release_is_left_alone(lake: Settings, reduced, tmp_path: Path) -> None:
    with LakeGraph(lake) as graph:
        fill(graph, reduced)
        graph.backup(tmp_path / "copy")
        connection = Connection(lake)
        connection.write(lambda tx: tx.run("MATCH (l:LakeGraph) SET l.schema = 99").consume())
        connection.close()
        for act in (lambda: graph.restore(tmp_path / "copy", replace=True), lambda: graph.backup(tmp_path / "other")):
            with pytest.raises(GraphError, match="update Headwater"):
                act()
        assert graph.cypher("MATCH (r:Run) RETURN count(r)").rows == [[4]]


def test_a_backup_that_is_not_whole_changes_nothing(lake: Settings, reduced, tmp_path: Path) -> None:
    with LakeGraph(lake) as graph:
        fill(graph, reduced)
        graph.backup(tmp_path / "copy")
        before = everything(graph)

        def harmed(name: str, harm: Callable[[bytes], bytes]) -> Path:
            folder = tmp_path / "harmed"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(tmp_path / "copy", folder)
            (folder / name).write_bytes(harm((folder / name).read_bytes()))
            return folder

        for name, harm, sentence in (
            ("edges.parquet", lambda data: data[:-10], "not as it was written"),
            ("edges.parquet", lambda data: data.replace(b"lake", b"lark", 1), "not as it was written"),
            ("nodes.parquet", lambda _: b"", "not as it was written"),
            ("manifest.json", lambda data: data[:-10], "not the manifest"),
            ("manifest.json", lambda data: data.replace(b'"format": 1', b'"format": 2'), "update Headwater"),
        ):
            with pytest.raises(InputError, match=sentence):
                graph.restore(harmed(name, harm), replace=True)
        (harmed("edges.parquet", bytes) / "feeds.parquet").unlink()
        with pytest.raises(InputError, match=r"feeds.parquet is missing"):
            graph.restore(tmp_path / "harmed", replace=True)
        with pytest.raises(InputError, match="is not a backup"):
            graph.restore(tmp_path, replace=True)
        assert everything(graph) == before


class CutError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("replace", [False, True])
def test_cut_off_anywhere_it_goes_on(lake: Settings, reduced, tmp_path: Path, monkeypatch, replace: bool) -> None:
    monkeypatch.setattr(restore_module, "PART", 40)
    with LakeGraph(lake) as graph:
        ids = fill(graph, reduced)
        graph.backup(tmp_path / "copy")
        before = everything(graph)
    write, cuts = Connection.write, 0
    wipe(lake)
    with LakeGraph(lake) as graph:
        if replace:
            graph.merge(reduced("other", [("lake:other/1#a", "lake:other/1#b")]))
        for allowed in range(1, 60):
            counted = iter(range(allowed))

            def cut(connection, work, counted=counted):
                if next(counted, None) is None:
                    raise CutError
                return write(connection, work)

            # Each try gets one transaction further into what is left; until the last, nobody reads anything.
            monkeypatch.setattr(Connection, "write", cut)
            try:
                graph.restore(tmp_path / "copy", replace=replace)
            except CutError:
                cuts += 1
                monkeypatch.setattr(Connection, "write", write)
                if graph.cypher("MATCH (l:LakeGraph) WHERE l.schema >= $n RETURN l", {"n": RESTORING}).rows:
                    for ask in (
                        lambda: graph.backward([ids[0]]),
                        graph.datasets,
                        lambda: graph.merge(reduced("late", [("lake:a/1#a", "lake:b/1#b")])),
                        lambda: graph.backup(tmp_path / "other"),
                    ):
                        with pytest.raises(GraphError, match="being restored"):
                            ask()
                continue
            break
        monkeypatch.setattr(Connection, "write", write)
        assert cuts > 3
        assert everything(graph) == before


def test_killed_in_the_middle_it_goes_on(lake: Settings, reduced, tmp_path: Path) -> None:
    with LakeGraph(lake) as graph:
        fill(graph, reduced)
        graph.backup(tmp_path / "copy")
        before = everything(graph)
    wipe(lake)
    program = """
import sys
from pathlib import Path
from provenance_store.graph import restore
from provenance_store.graph.queries import LakeGraph
from provenance_store.settings import load_settings
restore.PART = 10
with LakeGraph(load_settings()) as graph:
    graph.restore(Path(sys.argv[1]), progress=lambda done, total: print(done, flush=True))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "copy")]
    environment = {
        **os.environ,
        "HEADWATER_HOME": str(tmp_path / "home"),
        "HEADWATER_NEO4J__URI": lake.neo4j_uri,
        "HEADWATER_NEO4J__PASSWORD": lake.neo4j_password(),
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline()
        process.kill()
    with LakeGraph(lake) as graph, pytest.raises(GraphError, match="being restored"):
        graph.datasets()
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True)
    assert int(done.stdout.split()[-1]) == len(before["edges"])
    with LakeGraph(lake) as graph:
        assert everything(graph) == before


def test_what_another_wrote_meanwhile_is_not_taken_for_the_backup(lake: Settings, reduced, tmp_path: Path) -> None:
    with LakeGraph(lake) as graph:
        fill(graph, reduced)
        graph.backup(tmp_path / "copy")
        before = everything(graph)
    wipe(lake)
    connection = Connection(lake)

    def disturb(done: int, total: int) -> None:
        connection.write(lambda tx: tx.run("MERGE (:Run {id: 'late'})").consume())

    with LakeGraph(lake) as graph:
        with pytest.raises(GraphError, match="something else wrote"):
            graph.restore(tmp_path / "copy", progress=disturb)
        with pytest.raises(GraphError, match="being restored"):
            graph.datasets()
        # Another backup does not go on with this one's parts.
        shutil.copytree(tmp_path / "copy", tmp_path / "other")
        manifest = tmp_path / "other" / "manifest.json"
        manifest.write_bytes(manifest.read_bytes() + b"\n")
        with pytest.raises(InputError, match="--replace"):
            graph.restore(tmp_path / "other")
        graph.restore(tmp_path / "copy")
        assert everything(graph) == before
    connection.close()


def test_a_run_replaced_meanwhile_is_backed_up_whole(lake: Settings, reduced, tmp_path: Path) -> None:
    with LakeGraph(lake) as graph:
        fill(graph, reduced)
        new = [reduced("run-1", [("lake:new/1#a", "lake:new/1#b")], generation=1)]

        def replace_once(edges: int) -> None:
            if new:
                graph.merge(new.pop())

        manifest = graph.backup(tmp_path / "copy", tell=replace_once)
        assert manifest.files["edges.parquet"].rows == len(everything(graph)["edges"])
        with_late = graph.backup(
            tmp_path / "second", tell=lambda edges: graph.merge(reduced("late", [("lake:a/1#a", "lake:b/1#b")]))
        )
        assert with_late.files["edges.parquet"].rows == manifest.files["edges.parquet"].rows


def test_a_database_with_something_else_is_not_half_backed_up(lake: Settings, reduced, tmp_path: Path) -> None:
    connection = Connection(lake)
    connection.write(lambda tx: tx.run("CREATE (:Stranger)").consume())
    connection.close()
    with LakeGraph(lake) as graph:
        fill(graph, reduced)
        with pytest.raises(GraphError, match="Stranger"):
            graph.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_backup_of_an_earlier_schema_is_restored_and_brought_up(lake: Settings, tmp_path: Path) -> None:
    connection = Connection(lake)
    STEPS[0](connection)
    for statement in FIRST.split(";\n"):
        connection.write(lambda tx, text=statement: tx.run(text).consume())
    with LakeGraph(lake) as graph:
        assert graph.backup(tmp_path / "copy").schema == 1
        ensure_schema(connection)
        before = answers(graph, ["lake:out/1#a", "lake:in/1#9", "lake:in/1#1"])
    connection.close()
    wipe(lake)
    with LakeGraph(lake) as graph:
        graph.restore(tmp_path / "copy")
        assert graph.cypher("MATCH (l:LakeGraph) RETURN l.schema").rows == [[SCHEMA_VERSION]]
        assert answers(graph, ["lake:out/1#a", "lake:in/1#9", "lake:in/1#1"]) == before
        indexes = {row[0] for row in graph.cypher("SHOW INDEXES YIELD name").rows}
        assert "batch_of_run" in indexes
        assert "derivation_of_run" not in indexes
    assert Manifest.read(tmp_path / "copy").schema == 1


def test_with_its_keys_a_backup_makes_the_same_ids(lake: Settings, reduced, tmp_path: Path, monkeypatch) -> None:
    def run(settings: Settings, *arguments: str, **given: str) -> str:
        for module in ("backup", "graph"):
            monkeypatch.setattr(f"provenance_store.cli.{module}.load_settings", lambda: settings)
        result = CliRunner().invoke(app, arguments, catch_exceptions=False, **given)
        assert result.exit_code == 0
        return result.stdout

    ring = KeyRing(lake)
    people = []
    for version in ("v1", "v2"):
        hashed = hash_key("a@example.org", secret=ring.of_version("people", version))
        people.append(str(RecordId("people", version, hashed_key=hashed)))
        ring.rotate()
    plain = str(RecordId("people", "v10", key=("a@example.org",)))
    found = [people[0], plain, people[1]]
    with LakeGraph(lake) as graph:
        others = [
            "lake:people/v1-x/f#0",
            "lake:people/v1/f#0",
            "lake:people/v3",
            "lake:people2/v1#x",
            "lake:peoplf/1#x",
        ]
        graph.merge(reduced("run", [(f"lake:mails/1#{n}", one) for n, one in enumerate([*found, *others])]))
        assert graph.find("people", "a@example.org") == found
        assert graph.find("people", "b@example.org") == []
        assert graph.find("nothing", "a@example.org") == []
        with pytest.raises(InputError, match="names no dataset"):
            graph.find("people/v1", "a@example.org")
    (tmp_path / "pass").write_text("correct horse battery\n")
    secret = ("--passphrase-file", str(tmp_path / "pass"))
    told = run(lake, "backup", str(tmp_path / "copy"), *secret)
    assert "8 edges" in told
    assert "not in it" not in told
    assert "not in it" in run(lake, "backup", str(tmp_path / "without"))

    wipe(lake)
    fresh = Settings(home=tmp_path / "fresh", neo4j={"uri": lake.neo4j_uri, "password": lake.neo4j_password()})
    with LakeGraph(fresh) as graph:
        with pytest.raises(InputError, match="passphrase"):
            graph.restore(tmp_path / "copy", passphrase="wrong horse battery")
        with pytest.raises(InputError, match="holds no keys"):
            graph.restore(tmp_path / "without", passphrase="correct horse battery")
        assert graph.cypher("MATCH (r:Record) RETURN count(r)").rows == [[0]]
    assert "8 edges" in run(fresh, "restore", str(tmp_path / "copy"), *secret)
    assert KeyRing(fresh).read() == ring.read()
    assert run(fresh, "find", "people", input="a@example.org\n").splitlines() == found
    assert json.loads(run(fresh, "find", "people", "--json", input="a@example.org\n")) == found
    kinds = [entry.kind for entry in Audit(fresh).entries()]
    assert kinds == ["restore", "restore", "cypher", "restore", "find", "find"]
    assert b"a@example.org" not in b"".join(file.read_bytes() for file in (fresh.home / "audit").iterdir())
