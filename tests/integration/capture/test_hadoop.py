"""Real Hadoop Streaming jobs under LocalJobRunner: their output, and their provenance contracted by brute force."""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from provenance_store.errors import InputError, JobError
from provenance_store.lake import layout, tweets
from provenance_store.lake.checking import find_faults
from provenance_store.lake.records import lines_of
from provenance_store.model.document import compact, read_document
from provenance_store.model.ids import RecordId
from provenance_store.model.message import Manifest, Message
from provenance_store.settings import HadoopSettings, Settings
from provenance_store.transport.wiring import open_transport
from spark_apps.capture.hadoop import RunResult, run_job
from spark_apps.dics.hashtag_count import MALFORMED, find_hashtags
from tests.rewriting import rewrite_lines

REFERENCE = "spark_apps.dics.hashtag_count:JOB"
# Small splits and a small buffer: several map tasks a file, several spills a task, combiners again at the merge.
CRAMPED = {"mapreduce.input.fileinputformat.split.maxsize": "120000", "mapreduce.task.io.sort.mb": "1"}


@pytest.fixture
def recorded(tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path / "home",
        lake=tmp_path / "lake",
        recordings=tmp_path / "recordings",
        hadoop=HadoopSettings(conf=CRAMPED),
    )


def read_stream(settings: Settings, result: RunResult) -> tuple[list[Message], Manifest]:
    """The committed messages of the run, and its manifest."""
    source = open_transport(settings).source(result.topic)
    received = [one.message for one in source if one.message.headers["run"] == result.run]
    source.close()
    manifests = [Manifest.from_bytes(one.value) for one in received if one.headers["kind"] == "manifest"]
    manifest = max(manifests, key=lambda one: one.generation)
    assert manifest.generation == result.generation
    told = [one for one in received if one.headers["kind"] == "provenance"]
    return [one for one in told if one.headers["attempt"] in manifest.attempts], manifest


def read_lineage(settings: Settings, result: RunResult) -> dict[str, set[str]]:
    """Every output's inputs, contracted by walking back over the committed messages of the run."""
    messages, manifest = read_stream(settings, result)
    depends: dict[str, set[str]] = defaultdict(set)
    for message in messages:
        for _, dependent, dependency in read_document(message.value):
            depends[compact(dependent)].add(compact(dependency))
    assert Counter(message.headers["attempt"] for message in messages) == Counter(manifest.attempts)
    lineage: dict[str, set[str]] = {}
    for output in (one for one in depends if one.startswith("lake:")):
        found: set[str] = set()
        todo = [output]
        while todo:
            for one in depends.get(todo.pop(), ()):
                if one.startswith("lake:"):
                    found.add(one)
                else:
                    todo.append(one)
        lineage[output] = found
    return lineage


def line_at(settings: Settings, record: str) -> bytes:
    """The line that a record's id stands for; it must begin there and nowhere else."""
    parsed = RecordId.parse(record)
    assert parsed.file is not None
    assert parsed.position is not None
    content = (layout.version_path(settings.lake, parsed.dataset, parsed.version) / parsed.file).read_bytes()
    assert parsed.position == 0 or content[parsed.position - 1 : parsed.position] == b"\n"
    return content[parsed.position :].split(b"\n", 1)[0]


def read_output(settings: Settings, result: RunResult) -> list[bytes]:
    files = layout.resolve(settings.lake, result.outputs[0]).files()
    return [line for path in files for line in path.read_bytes().split(b"\n")[:-1]]


def check_hashtag_count(settings: Settings, result: RunResult) -> None:
    """Output and lineage against a count in plain Python."""
    counts: Counter[str] = Counter()
    contributors: dict[str, set[str]] = defaultdict(set)
    version = layout.resolve(settings.lake, result.inputs[0])
    for path in version.files():
        position = 0
        for line in path.read_bytes().splitlines(keepends=True):
            record = str(RecordId(version.dataset, version.name, file=path.name, position=position))
            for hashtag, _ in find_hashtags(0, line.rstrip(b"\n").decode("utf-8", "surrogateescape")):
                counts[hashtag] += 1
                contributors[hashtag].add(record)
            position += len(line)
    output = dict(line.decode().split("\t") for line in read_output(settings, result))
    assert output == {hashtag: str(count) for hashtag, count in counts.items()}
    lineage = read_lineage(settings, result)
    captured = {line_at(settings, record).decode().split("\t")[0]: inputs for record, inputs in lineage.items()}
    assert len(captured) == len(lineage)
    assert captured == contributors
    check_executions(settings, result, set().union(*contributors.values()))


def check_executions(settings: Settings, result: RunResult, contributors: set[str]) -> None:
    """Every call that gave something is one whole execution, in one message, under its function's name."""
    used: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    generated: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    places: dict[str, set[int]] = defaultdict(set)
    for place, message in enumerate(read_stream(settings, result)[0]):
        function = message.headers["function"]
        for relation, dependent, dependency in read_document(message.value):
            activity = dependent if relation == "used" else dependency
            if relation == "used":
                used[function][activity].add(compact(dependency))
            else:
                assert relation == "wasGeneratedBy"  # these are small: nothing was gathered
                generated[function][activity].add(dependent)
            places[activity].add(place)
    assert used.keys() == generated.keys() == {"map", "combine", "reduce"}
    assert all(used[function].keys() == generated[function].keys() for function in used)
    assert all(len(place) == 1 for place in places.values())
    assert sorted(map(list, used["map"].values())) == sorted([record] for record in contributors)
    assert len(used["reduce"]) == len(read_output(settings, result))
    made = {item for function in ("map", "combine") for items in generated[function].values() for item in items}
    assert {item for function in ("combine", "reduce") for items in used[function].values() for item in items} == made


def test_hashtag_count_through_a_recording(recorded: Settings) -> None:
    version = tweets.generate(recorded.lake, count=2000, seed=5, files=3)
    with version.files()[1].open("ab") as file:
        file.write(b'no tweet\n{"text":"\xff #bad"}\n{"text":"#Last #ligne"}')
    result = run_job(REFERENCE, settings=recorded, run="count-1", inputs=["tweets"])
    check_hashtag_count(recorded, result)
    assert result.counters[MALFORMED] == 2
    assert result.messages > 0
    folder = recorded.home / "runs" / "count-1"
    assert sorted(path.name for path in folder.iterdir()) == ["hadoop.log", "lock"]
    assert [path.name for path in (recorded.lake / "hashtag_counts").iterdir()] == ["count-1"]
    assert run_job(REFERENCE, settings=recorded, run="count-1", inputs=["tweets"]) == result
    tweets.generate(recorded.lake, count=5, seed=6)
    with pytest.raises(InputError, match="choose another run id"):
        run_job(REFERENCE, settings=recorded, run="count-1", inputs=["tweets/n5-s6"])


def test_hashtag_count_through_kafka(kafka_service: Settings, tmp_path: Path) -> None:
    settings = kafka_service.model_copy(update={"lake": tmp_path / "lake", "home": tmp_path / "home"})
    tweets.generate(settings.lake, count=2000, seed=5, files=2)
    result = run_job(REFERENCE, settings=settings, run="count-kafka", inputs=["tweets"])
    check_hashtag_count(settings, result)


ODD_JOB = """
from spark_apps.capture.hadoop_job import HadoopJob

def spread(offset, line):
    print("a stray print must not reach the shuffle")
    yield f"key\\t{line[:1]}\\r\\n", ""
    yield line[:1], f"{line}\\n\\x08\\t"

def gather(key, values):
    found = sorted(values)
    if key.startswith("key"):
        yield "odd\\té", ""
        yield "", str(len(found))
    elif found:
        yield key, "|".join(value.replace("\\n\\x08\\t", "$").replace("\\r", "%") for value in found)

JOB = HadoopJob(dic="odd", output="odd", map=spread, reduce=gather, reducers=3)

def choose(key, values):
    if key != "a":
        yield key, str(len(list(values)))

def letters(offset, line):
    yield line[:1], ""

CHOOSY = HadoopJob(dic="odd", output="odd", map=letters, reduce=choose, reducers=1)
COMBINING = HadoopJob(dic="odd", output="odd", map=letters, combine=choose, reduce=gather, reducers=1)

def fail(offset, line):
    raise ValueError("this map always fails")

FAILING = HadoopJob(dic="odd", output="odd", map=fail, reduce=gather, reducers=1)
"""


@pytest.fixture
def odd_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "odd_job.py").write_text(ODD_JOB)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("odd_job", None)
    with layout.new_version(layout.version_of(tmp_path / "lake", "letters", "v1"), {}) as version:
        (version / "day=1").mkdir()
        (version / "day=1" / "ü x.txt").write_bytes("é1\n\naß\n雨\té\n".encode())
        (version / "b.txt").write_bytes(b"a2\na\xff\nr\rs\nr\r\nlast")
    return "odd_job"


def test_odd_keys_values_and_files_keep_their_places(recorded: Settings, odd_module: str) -> None:
    result = run_job(f"{odd_module}:JOB", settings=recorded, run="odd-1", inputs=["letters"])
    captured: dict[bytes, list[set[bytes]]] = defaultdict(list)
    for record, inputs in read_lineage(recorded, result).items():
        captured[line_at(recorded, record)].append({line_at(recorded, one) for one in inputs})
    groups = {
        "é".encode(): {"é1".encode()},
        b"": {b""},
        b"a": {"aß".encode(), b"a2", b"a\xff"},
        "雨".encode(): {"雨\té".encode()},
        b"r": {b"r\rs", b"r\r"},
        b"l": {b"last"},
    }
    expected: dict[bytes, list[set[bytes]]] = defaultdict(list)
    for letter, lines in groups.items():
        together = b"|".join(
            line.replace(b"\r", b"%") + b"$"
            for line in sorted(lines, key=lambda raw: raw.decode("utf-8", "surrogateescape"))
        )
        expected[letter + b"\t" + together].append(lines)
        expected["odd\té\t".encode()].append(lines)
        expected[b"\t%d" % len(lines)].append(lines)
    assert {line: sorted(map(sorted, one)) for line, one in captured.items()} == {
        line: sorted(map(sorted, one)) for line, one in expected.items()
    }
    assert sorted(read_output(recorded, result)) == sorted(line for line, one in expected.items() for _ in one)


def test_rewritten_lines_keep_their_ids(recorded: Settings) -> None:
    version = tweets.generate(recorded.lake, count=1500, seed=2)
    lines = dict(lines_of(version))
    fates: list[bytes | None] = [None, b'{"text":"#hidden"}', json.dumps({"text": "#longer" + " " * 500}).encode()]
    changed = {line: fates[number % 9] for number, line in enumerate(lines.values()) if number % 9 < len(fates)}
    for file in version.files():
        rewrite_lines(version, file, lambda line: changed.get(line, line))
    result = run_job(REFERENCE, settings=recorded, run="after", inputs=["tweets"])
    expected: dict[str, set[str]] = defaultdict(set)
    for record, line in lines.items():
        for hashtag, _ in find_hashtags(0, (changed.get(line, line) or b"").decode()):
            expected[hashtag].add(record)
    lineage = read_lineage(recorded, result)
    assert {line_at(recorded, one).decode().split("\t")[0]: inputs for one, inputs in lineage.items()} == expected
    assert len(expected["hidden"]) > 100
    assert list(find_faults(recorded.lake)) == []


@pytest.mark.parametrize(("attribute", "marks"), [("CHOOSY", 1), ("COMBINING", 1), ("JOB", 0)])
def test_a_reduce_that_may_give_nothing_marks_its_run(
    recorded: Settings, odd_module: str, attribute: str, marks: int
) -> None:
    result = run_job(f"{odd_module}:{attribute}", settings=recorded, run="odd-marks", inputs=["letters"])
    _, manifest = read_stream(recorded, result)
    assert manifest.marks == ["reduce that yields nothing"] * marks


def test_a_failed_job_leaves_no_version_and_no_manifest(recorded: Settings, odd_module: str) -> None:
    with pytest.raises(JobError, match=r"(?s)no manifest was sent.*hadoop\.log, and ends"):
        run_job(f"{odd_module}:FAILING", settings=recorded, run="odd-2", inputs=["letters"])
    log = recorded.home / "runs" / "odd-2" / "hadoop.log"
    assert "this map always fails" in log.read_text()
    assert list((recorded.lake / "odd").iterdir()) == []
    assert not list((recorded.recordings or Path()).rglob("*.jsonl"))
    assert not (recorded.home / "runs" / "odd-2" / "job.json").exists()


def test_the_command_line_tells_the_run(
    recorded: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from typer.testing import CliRunner

    from provenance_store.cli.jobs import app

    monkeypatch.setenv("HEADWATER_HOME", str(recorded.home))
    monkeypatch.setenv("HEADWATER_RECORDINGS", str(recorded.recordings))
    runner = CliRunner()
    lake = str(recorded.lake)
    made = runner.invoke(app, ["generate", "tweets", "--count", "50", "--seed", "1", "--out", lake, "--json"])
    assert json.loads(made.stdout)["version"] == "tweets/n50-s1"
    assert runner.invoke(app, ["run", "no-such-dic"]).exception.args[0].startswith("There is no DIC")  # type: ignore[union-attr]
    done = runner.invoke(app, ["run", "hashtag-count", "--lake", lake, "--reducers", "1", "--json"])
    assert done.exit_code == 0
    told = json.loads(capfd.readouterr().out)
    assert told["run"].startswith("hashtag-count-")
    assert told["topic"] == "headwater.hashtag-count"
    assert Path(told["paths"][0], "part-00000").exists()
    refused = runner.invoke(app, ["run", "hashtag-count", "--lake", lake, "--run", "x", "--input", "none"])
    assert refused.exit_code == 1
    assert "There is no dataset 'none'" in capfd.readouterr().err
