"""The worker's functions, driven without Hadoop: split, map, sort, combine in spills and merges, partition, reduce."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.lake.places import TAKEN_OUT, Places
from provenance_store.model.ids import file_prefix
from spark_apps.capture import counters, hadoop_worker
from spark_apps.capture.hadoop_worker import Task, run_combine, run_map, run_reduce
from spark_apps.dics.hashtag_count import add_up

INPUT = file_prefix("words", "v1", "part-00000")


def output_prefix(partition: int) -> str:
    return file_prefix("counts", "r1", f"part-{partition:05d}")


def of_map(task: int) -> "Recorder":
    return Recorder({"f": INPUT, "a": f"run:m{task}-", "i": f"run:m{task}."})


def of_reduce(partition: int) -> "Recorder":
    own = {"a": f"run:r{partition}-", "c": f"run:c{partition}-"}
    return Recorder({"f": output_prefix(partition), "i": "run:m", **own})


Execution: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]


class Recorder:
    """Keeps executions with their ids expanded, and the lines written."""

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        self.executions: list[Execution] = []
        self.lines: list[bytes] = []
        self._prefixes = prefixes or {}

    def emit(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        self.executions.append(
            (self._expand(activity), tuple(map(self._expand, used)), tuple(map(self._expand, generated)))
        )

    def emit_each(self, names: Sequence[str], *, activity: str, used: str, generated: str) -> None:
        for name in names:
            self.emit(f"{activity}{name}", [f"{used}{name}"], [f"{generated}{name}"])

    def write(self, line: bytes) -> None:
        self.lines.append(line)

    def _expand(self, name: str) -> str:
        prefix, _, local = name.partition(":")
        return self._prefixes[prefix] + local


@pytest.fixture(autouse=True)
def _fresh_counts() -> Iterator[None]:
    counters._counts.clear()
    yield
    counters._counts.clear()


def words(_: int, line: str) -> Iterator[tuple[str, str]]:
    for word in line.split(" "):
        if word:
            yield word, "1"


def simulate(
    texts: list[bytes], *, tasks: int, reducers: int, rng: random.Random, combining: bool = True
) -> tuple[dict[str, bytes], list[Execution]]:
    """Outputs by lake id, and every execution told."""
    executions: list[Execution] = []
    offsets = [sum(len(text) + 1 for text in texts[:number]) for number in range(len(texts))]
    partitions: dict[int, list[bytes]] = defaultdict(list)
    for task in range(tasks):
        mapped = of_map(task)
        lines = [b"%d\t%b\n" % (offsets[n], texts[n]) for n in range(task, len(texts), tasks)]
        run_map(words, lines, mapped.write, mapped, task=task)
        executions += mapped.executions
        spills: dict[int, list[bytes]] = defaultdict(list)
        for line in mapped.lines:
            spills[rng.randrange(3)].append(line)
        merged: list[bytes] = []
        for spill in spills.values():
            merged += combine(spill) if combining else spill
        for line in combine(merged) if combining and rng.random() < 0.5 else merged:
            partitions[crc32(line.split(b"\t")[0]) % reducers].append(line)
    outputs: dict[str, bytes] = {}
    for partition in range(reducers):
        reduced = of_reduce(partition)
        lines = sorted(partitions[partition], key=lambda line: line.split(b"\t")[0])
        run_reduce(add_up, lines, reduced.write, reduced, reduced)
        executions += reduced.executions
        position = 0
        for line in reduced.lines:
            outputs[f"{output_prefix(partition)}{position}"] = line
            position += len(line)
    return outputs, executions


def combine(lines: list[bytes]) -> list[bytes]:
    combined = Recorder()
    run_combine(add_up, sorted(lines, key=lambda line: line.split(b"\t")[0]), combined.write)
    return combined.lines


def close_over(executions: list[Execution]) -> dict[str, set[str]]:
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
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_provenance_is_exactly_who_contributed(
    texts: list[str], tasks: int, reducers: int, combining: bool, rng: random.Random
) -> None:
    raw = [text.encode() for text in texts]
    outputs, executions = simulate(raw, tasks=tasks, reducers=reducers, rng=rng, combining=combining)
    counts = Counter(word for text in texts for word in text.split(" ") if word)
    assert sorted(outputs.values()) == sorted(f"{word}\t{count}\n".encode() for word, count in counts.items())
    expected: dict[bytes, set[str]] = defaultdict(set)
    calls_of_map = set()
    offset = 0
    for number, (text, line) in enumerate(zip(texts, raw, strict=True)):
        for word in filter(None, text.split(" ")):
            expected[f"{word}\t{counts[word]}\n".encode()].add(f"{INPUT}{offset}")
            calls_of_map.add(f"run:m{number % tasks}-{offset}")
        offset += len(line) + 1
    captured = {outputs[output]: inputs for output, inputs in close_over(executions).items()}
    assert captured == expected
    calls = Counter(activity for activity, _, _ in executions)
    assert {call for call in calls if call.startswith("run:m")} == calls_of_map
    assert sum(call.startswith("run:r") for call in calls) == len(counts)
    # Two calls of combine share a name where both were given one and the same pair's item: then both used the same.
    assert len(set(executions)) == len(calls)
    assert {call for call, count in calls.items() if count > 1} <= {call for call in calls if call.startswith("run:c")}
    items = {item for _, _, generated in executions for item in generated}
    assert not items & calls.keys()


def test_another_try_of_a_task_names_everything_as_before() -> None:
    texts = [b"a b a", b"b", b"", b"c a"]
    one, other = (simulate(texts, tasks=2, reducers=2, rng=random.Random(7))[1] for _ in range(2))
    assert one == other


def test_a_call_of_map_is_an_execution_with_one_item_for_all_its_keys() -> None:
    recorder = of_map(4)
    run_map(words, [b"0\ta b a\n", b"6\t\n", b"7\tb\n"], recorder.write, recorder, task=4)
    assert recorder.lines == [b"a\t4.0\t1\n", b"b\t4.0\t1\n", b"a\t4.0\t1\n", b"b\t4.7\t1\n"]
    assert recorder.executions == [
        ("run:m4-0", (f"{INPUT}0",), ("run:m4.0",)),
        ("run:m4-7", (f"{INPUT}7",), ("run:m4.7",)),
    ]


def test_the_reducer_tells_every_call_of_combine_in_its_group() -> None:
    alone = combine([b"j\t0.0\t1\n"])
    one = combine([b"k\t0.0\t1\n", b"k\t0.5\t2\n"])
    other = combine([b"k\t0.7\t4\n"])
    merged = combine([*one, *other])
    recorder = of_reduce(1)
    run_reduce(add_up, [*alone, *merged], recorder.write, recorder, recorder)
    assert recorder.lines == [b"j\t1\n", b"k\t7\n"]
    first = f"run:c1-0.{digest_of(alone)}"
    second, third, last = (f"run:c1-1.{digest_of(lines)}" for lines in (one, other, merged))
    assert recorder.executions == [
        (first, ("run:m0.0",), (f"{first}.0",)),
        ("run:r1-0", (f"{first}.0",), (f"{output_prefix(1)}0",)),
        (second, ("run:m0.0", "run:m0.5"), (f"{second}.0",)),
        (third, ("run:m0.7",), (f"{third}.0",)),
        (last, (f"{second}.0", f"{third}.0"), (f"{last}.0",)),
        ("run:r1-1", (f"{last}.0",), (f"{output_prefix(1)}4",)),
    ]


def digest_of(combined: list[bytes]) -> str:
    return combined[-1].split(b"\t")[1].removeprefix(b"c").decode()


def test_a_call_that_gives_nothing_leaves_nothing_but_a_count() -> None:
    recorder = of_map(0)
    run_map(lambda *_: (), [b"0\tx\n"], recorder.write, recorder, task=0)
    assert not counters._counts  # a map sees one record: taking another away changes nothing
    run_combine(lambda *_: (), [b"k\t0.0\t1\n"], recorder.write)
    run_reduce(lambda *_: (), [b"k\t0.0\t1\n"], recorder.write, recorder, recorder)
    assert (recorder.executions, recorder.lines) == ([], [])
    assert counters._counts == {(counters.GROUP, counters.GAVE_NOTHING): 2}


def test_an_output_depends_on_values_that_were_not_read_too() -> None:
    recorder = of_reduce(3)
    lines = [b"k\t0.0\t1\n", b"k\t0.5\t2\n", b"l\t0.9\t3\n"]
    run_reduce(lambda key, values: [(key, next(values))], lines, recorder.write, recorder, recorder)
    output = output_prefix(3)
    assert recorder.executions == [
        ("run:r3-0", ("run:m0.0", "run:m0.5"), (f"{output}0",)),
        ("run:r3-1", ("run:m0.9",), (f"{output}4",)),
    ]


def test_small_batches_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [b"a a b", b"a", *[b"a c"] * 60, b"b"]

    def find() -> list[Execution]:
        return simulate(texts, tasks=2, reducers=1, rng=random.Random(3))[1]

    expected = find()
    assert len({call for call, _, _ in expected if call.startswith("run:m")}) == len(texts)
    monkeypatch.setattr(hadoop_worker, "_BATCH", 7)
    monkeypatch.setattr(hadoop_worker, "_KEYS", 1)
    assert find() == expected


def test_a_key_of_which_combine_left_no_pair_is_not_reduced() -> None:
    recorder = of_reduce(0)
    run_reduce(add_up, [b"k\t=cDigest\t0.0 0.1\n"], recorder.write, recorder, recorder)
    assert recorder.lines == []
    assert close_over(recorder.executions) == {}
    assert not counters._counts


@pytest.mark.parametrize("pair", [("k", None), ("k", 1), (1, "v"), (None, "v")])
def test_a_pair_that_is_no_pair_of_texts_is_refused(pair: tuple[str, str]) -> None:
    recorder = of_map(0)
    with pytest.raises(InputError, match="is no text"):
        run_map(lambda *_: [pair], [b"0\tx\n"], recorder.write, recorder, task=0)


def test_combine_must_keep_its_key() -> None:
    recorder = Recorder()
    with pytest.raises(InputError, match="another key"):
        run_combine(lambda *_: [("other", "1")], [b"k\t0.0\t1\n"], recorder.write)


def test_a_worker_that_hadoop_did_not_start_says_so() -> None:
    with pytest.raises(InputError, match="started by Hadoop Streaming"):
        Task.from_environment({})


def test_lines_of_a_rewritten_file_come_under_the_positions_in_their_ids() -> None:
    places = Places.unmoved(12).rewritten([0, 4, 8], [0, TAKEN_OUT, 9], end=13)
    lines = [b"0\tlonger\tone\n", b"9\t\n"]
    assert list(hadoop_worker.place_lines(lines, places.to_bytes())) == [b"0\tlonger\tone\n", b"8\t\n"]
