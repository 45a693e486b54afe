"""The worker's functions, driven without Hadoop: split, map, sort, combine in spills and merges, partition, reduce."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.model.ids import file_prefix
from spark_apps.capture import hadoop_worker
from spark_apps.capture.hadoop_worker import Task, run_combine, run_map, run_reduce
from spark_apps.capture.wrapping import TELLING, read_telling, unwrap
from spark_apps.dics.hashtag_count import add_up

INPUT = file_prefix("words", "v1", "part-00000")


class Recorder:
    """Keeps executions, and the lines written."""

    def __init__(self) -> None:
        self.executions: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        self.lines: list[bytes] = []

    def emit(self, activity: str, used: object, generated: object) -> None:
        self.executions.append((activity, tuple(used), tuple(generated)))  # type: ignore[arg-type]

    def collect(self, name: str, members: object) -> None:
        self.executions.append((f"gathering {name}", tuple(members), (name,)))  # type: ignore[arg-type]

    def write(self, line: bytes) -> None:
        self.lines.append(line)


def words(_: int, line: str) -> Iterator[tuple[str, str]]:
    for word in line.split(" "):
        if word:
            yield word, "1"


def simulate(texts: list[bytes], *, tasks: int, reducers: int, rng: random.Random) -> tuple[dict[str, bytes], Recorder]:
    """Outputs by lake id, and everything emitted."""
    recorder = Recorder()
    offsets = [sum(len(text) + 1 for text in texts[:number]) for number in range(len(texts))]
    partitions: dict[int, list[bytes]] = defaultdict(list)
    for task in range(tasks):
        mapped = Recorder()
        lines = [b"%d\t%b\n" % (offsets[n], texts[n]) for n in range(task, len(texts), tasks)]
        run_map(words, lines, mapped.write, recorder, task=task, prefix=INPUT)
        spills: dict[int, list[bytes]] = defaultdict(list)
        for line in mapped.lines:
            spills[rng.randrange(3)].append(line)
        merged: list[bytes] = []
        for spill in spills.values():
            merged += combine(spill)
        for line in combine(merged) if rng.random() < 0.5 else merged:
            partitions[crc32(line.split(b"\t")[0]) % reducers].append(line)
    outputs: dict[str, bytes] = {}
    for partition in range(reducers):
        reduced = Recorder()
        prefix = file_prefix("counts", "r1", f"part-{partition:05d}")
        lines = sorted(partitions[partition], key=lambda line: line.split(b"\t")[0])
        run_reduce(add_up, lines, reduced.write, recorder, recorder, partition=partition, prefix=prefix)
        position = 0
        for line in reduced.lines:
            outputs[f"{prefix}{position}"] = line
            position += len(line)
    return outputs, recorder


def combine(lines: list[bytes]) -> list[bytes]:
    combined = Recorder()
    run_combine(add_up, sorted(lines, key=lambda line: line.split(b"\t")[0]), combined.write)
    return combined.lines


def close_over(executions: list[tuple[str, tuple[str, ...], tuple[str, ...]]]) -> dict[str, set[str]]:
    """Every output's inputs, by walking back from it."""
    made_from: defaultdict[str, set[str]] = defaultdict(set)
    for _, used, generated in executions:
        for item in generated:
            made_from[item].update(used)
    dependencies: dict[str, set[str]] = {}
    for output in [item for item in made_from if item.startswith("lake:")]:
        found: set[str] = set()
        todo = [output]
        while todo:
            for item in made_from[todo.pop()]:
                if item.startswith("lake:"):
                    found.add(item)
                else:
                    todo.append(item)
        dependencies[output] = found
    return dependencies


@given(
    st.lists(st.text(st.sampled_from("ab é雨\t\x08"), max_size=12), max_size=30),
    st.integers(1, 4),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_provenance_is_exactly_who_contributed(texts: list[str], tasks: int, reducers: int, rng: random.Random) -> None:
    raw = [text.encode() for text in texts]
    outputs, recorder = simulate(raw, tasks=tasks, reducers=reducers, rng=rng)
    counts = Counter(word for text in texts for word in text.split(" ") if word)
    assert sorted(outputs.values()) == sorted(f"{word}\t{count}\n".encode() for word, count in counts.items())
    expected: dict[bytes, set[str]] = defaultdict(set)
    offset = 0
    for text, line in zip(texts, raw, strict=True):
        for word in filter(None, text.split(" ")):
            expected[f"{word}\t{counts[word]}\n".encode()].add(f"{INPUT}{offset}")
        offset += len(line) + 1
    captured = {outputs[output]: inputs for output, inputs in close_over(recorder.executions).items()}
    assert captured == expected
    calls = [activity for activity, _, _ in recorder.executions if not activity.startswith("gathering")]
    assert len(set(calls)) == len(calls)
    items = {item for _, _, generated in recorder.executions for item in generated}
    assert not items & set(calls)


def test_another_try_of_a_task_names_everything_as_before() -> None:
    texts = [b"a b a", b"b", b"", b"c a"]
    one, other = (simulate(texts, tasks=2, reducers=2, rng=random.Random(7))[1].executions for _ in range(2))
    assert one == other


def test_a_combined_item_is_named_by_its_inputs_whatever_their_order() -> None:
    lines = [b"k\trun:m0-0.0\t1\n", b"k\trun:m0-1.3\t2\n"]
    one, other = combine(lines), combine(lines[::-1])
    assert one[-1] == other[-1] == b"k\trun:cm0-0.0\t3\n"
    told = [read_telling(line) for lines in (one, other) for line in unwrap(lines) if line[1].startswith(TELLING)]
    assert [(item, sorted(used)) for item, used in told] == [("run:cm0-0.0", ["run:m0-0.0", "run:m0-1.3"])] * 2


def test_what_combine_makes_of_one_item_is_of_that_item_still() -> None:
    assert combine([b"k\trun:m0-0.0\t1\n", b"k\trun:m0-0.0\t2\n"]) == [b"k\trun:m0-0.0\t3\n"]


def test_a_call_that_gives_nothing_leaves_nothing() -> None:
    recorder = Recorder()
    run_map(lambda *_: (), [b"0\tx\n"], recorder.write, recorder, task=0, prefix=INPUT)
    run_combine(lambda *_: (), [b"k\trun:a\t1\n"], recorder.write)
    lines = [b"k\trun:a\t1\n"]
    run_reduce(lambda *_: (), lines, recorder.write, recorder, recorder, partition=0, prefix=INPUT)
    assert (recorder.executions, recorder.lines) == ([], [])


def test_an_output_depends_on_values_that_were_not_read_too() -> None:
    recorder = Recorder()
    lines = [b"k\trun:m0-0.0\t1\n", b"k\trun:m0-5.0\t2\n", b"l\trun:m0-9.0\t3\n"]
    run_reduce(
        lambda key, values: [(key, next(values))],
        lines,
        recorder.write,
        recorder,
        recorder,
        partition=3,
        prefix="lake:o/r/p#",
    )
    assert recorder.executions == [
        ("run:r3-0", ("run:m0-0.0", "run:m0-5.0"), ("lake:o/r/p#0",)),
        ("run:r3-1", ("run:m0-9.0",), ("lake:o/r/p#4",)),
    ]


def test_small_batches_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [b"a a b", b"a", *[b"a c"] * 60, b"b"]

    def find() -> dict[bytes, set[str]]:
        outputs, recorder = simulate(texts, tasks=2, reducers=1, rng=random.Random(3))
        return {outputs[output]: inputs for output, inputs in close_over(recorder.executions).items()}

    expected = find()
    assert {line: len(inputs) for line, inputs in expected.items()} == {b"a\t63\n": 62, b"b\t2\n": 2, b"c\t60\n": 60}
    monkeypatch.setattr(hadoop_worker, "BATCH", 7)
    assert find() == expected


def test_a_key_of_which_combine_left_no_pair_is_not_reduced() -> None:
    recorder = Recorder()
    lines = [b"k\t=run:cm0-0.0\trun:m0-0.0 run:m0-1.0\n"]
    run_reduce(add_up, lines, recorder.write, recorder, recorder, partition=0, prefix=INPUT)
    assert recorder.lines == []
    assert close_over(recorder.executions) == {}


@pytest.mark.parametrize("pair", [("k", None), ("k", 1), (1, "v"), (None, "v")])
def test_a_pair_that_is_no_pair_of_texts_is_refused(pair: tuple[str, str]) -> None:
    recorder = Recorder()
    with pytest.raises(InputError, match="is no text"):
        run_map(lambda *_: [pair], [b"0\tx\n"], recorder.write, recorder, task=0, prefix=INPUT)


def test_combine_must_keep_its_key() -> None:
    recorder = Recorder()
    with pytest.raises(InputError, match="another key"):
        run_combine(lambda *_: [("other", "1")], [b"k\trun:a\t1\n"], recorder.write)


def test_a_worker_that_hadoop_did_not_start_says_so() -> None:
    with pytest.raises(InputError, match="started by Hadoop Streaming"):
        Task.from_environment({})
