"""The hashtag-count stream of paper 003, synthetic: whole executions of map, combine and reduce as messages.

A map task reads a file of 5,000 tweets. Each call of `map` used a tweet and generated an item for each hashtag in it;
two of five tweets have none. Hadoop combines at every spill, here after 1,000 tweets: each call of `combine` used what
the task generated for one hashtag since the last, and generated one item. Each call of `reduce` used what was combined
for one hashtag, and generated a record. Hashtags follow Zipf's law, and every task is drawn from the seed and its
number alone, so the stream is made as it is read: in memory is one task, and which spills have which hashtag.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from provenance_store.bench.rows import RowTemplate
from provenance_store.lake.tweets import HASHTAGS_PER_TWEET, VOCABULARY, ZIPF_EXPONENT
from provenance_store.model.ids import LAKE_NAMESPACE, run_namespace
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction.native import PADDING, Numbers

TWEETS_PER_SPILL = 1000
SPILLS = 5
TWEETS_PER_TASK = SPILLS * TWEETS_PER_SPILL
REDUCERS = 8
DIC = "hashtag-count"

# A message holds about so many relations, which is 256 to 384 kB.
_ROWS = 1450
# The inputs of a larger execution are gathered in collections.
_MOST_INPUTS = 2500
_TWEET_BYTES = (180, 520)
_LINE_BYTES = (6, 24)
_NODES = 8
_JOB = "1767333600000_0042"
_TWEETS = "lake:tweets/collected-2026-01-02T06-00-00Z/day=2026-01-02/hour=06"
_MAPPER, _REDUCER = (f"job_{_JOB}/attempt_{_JOB}_{kind}_<6>_0" for kind in "mr")


class _Drawn(NamedTuple):
    """What the tweets of a task are: where each begins, and of each hashtag in them the tweet and its number in it."""

    offsets: Numbers
    hashtags: Numbers
    tweets: Numbers
    numbers: Numbers


class _Relation(NamedTuple):
    name: str
    row: RowTemplate


def _relation(name: str, first: str, second: str) -> _Relation:
    """A relation by its two ends, each `<name in PROV-JSON> <id>`."""
    ends = [end.split(" ") for end in (first, second)]
    body = ",".join(f'"prov:{end}":"{name}"' for end, name in ends)
    return _Relation(name, RowTemplate(f'"_:<>":{{{body}}},'))


_MAP = f"run:map/{_MAPPER}/record-<>"
_COMBINE = f"run:combine/{_MAPPER}/spill-<>/hashtag-<>"
_REDUCE = f"run:reduce/{_REDUCER}/hashtag-<>"
_MAP_USED = _relation("used", f"activity {_MAP}", f"entity {_TWEETS}/part-<5>.jsonl#<>")
_MAP_MADE = _relation("wasGeneratedBy", f"entity {_MAP}/item-<>", f"activity {_MAP}")
_COMBINE_USED = _relation("used", f"activity {_COMBINE}", f"entity {_MAP}/item-<>")
_COMBINE_MADE = _relation("wasGeneratedBy", f"entity {_COMBINE}/item-0", f"activity {_COMBINE}")
_REDUCE_USED = _relation("used", f"activity {_REDUCE}", f"entity {_COMBINE}/item-0")
_GATHERED = _relation("hadMember", f"collection {_REDUCE}/inputs-0-<>", f"entity {_COMBINE}/item-0")
_GATHERED_USED = _relation("used", f"activity {_REDUCE}", f"entity {_REDUCE}/inputs-0-<>")


class HashtagStream:
    """The stream of so many tweets; iterating makes it anew."""

    def __init__(self, tweets: int, *, seed: int = 1) -> None:
        self._tweets = tweets
        self._seed = seed
        self._tasks = -(-tweets // TWEETS_PER_TASK)
        self.run = f"{DIC}-2026-01-02T07-00-00Z-n{tweets}-s{seed}"
        self._output = f"lake:hashtag_counts/{self.run}"
        self._reduce_made = _relation("wasGeneratedBy", f"entity {self._output}/part-<5>#<>", f"activity {_REDUCE}")
        self._prefix = f'{{"prefix":{{"lake":"{LAKE_NAMESPACE}","run":"{run_namespace(self.run)}"}}'.encode()
        shares = np.cumsum(1 / np.arange(1, VOCABULARY + 1) ** ZIPF_EXPONENT)
        self._hashtag_shares = shares / shares[-1]
        self._count_shares = np.cumsum(HASHTAGS_PER_TWEET)[:-1]
        lines = np.random.default_rng(seed).integers(*_LINE_BYTES, VOCABULARY)
        self._line_bytes: Numbers = lines.astype(np.int64)
        self._buffer = np.empty(0, np.uint8)

    def __iter__(self) -> Iterator[Message]:
        """Every message once: the map tasks in order, each with its combiner, the reducers, then the manifest."""
        attempts: dict[str, int] = {}
        for task in range(self._tasks):
            drawn = self._draw(task)
            for function, documents in (("map", self._map(task, drawn)), ("combine", self._combine(task, drawn))):
                yield from self._messages(function, task, documents, attempts)
        occurs = self._occurrences()
        positions = self._positions(occurs)
        for reducer in range(REDUCERS):
            yield from self._messages("reduce", reducer, self._reduce(reducer, occurs, positions), attempts)
        headers = Headers(self.run, DIC, "", 0, kind=MANIFEST)
        yield Message.of(headers, Manifest(attempts=attempts).to_bytes())

    def dependencies(self) -> pl.DataFrame:
        """What the stream's reduction must give: columns output and input, compact ids, sorted."""
        return pl.concat(self.dependencies_by_task()).sort("input", "output")

    def dependencies_by_task(self) -> Iterator[pl.DataFrame]:
        """The same, in parts that have nothing in common and are not sorted."""
        positions = self._positions(self._occurrences())
        number = pl.col("reducer", "task").cast(pl.String).str.zfill(5)
        for task in range(self._tasks):
            offsets, hashtags, tweets, _ = self._draw(task)
            pairs = pl.DataFrame(
                {
                    "reducer": hashtags % REDUCERS,
                    "position": positions[hashtags],
                    "task": np.full(len(hashtags), task),
                    "offset": offsets[tweets],
                }
            )
            yield (
                pairs.unique()
                .with_columns(number)
                .select(
                    output=pl.format(self._output + "/part-{}#{}", "reducer", "position"),
                    input=pl.format(_TWEETS + "/part-{}.jsonl#{}", "task", "offset"),
                )
            )

    def _draw(self, task: int) -> _Drawn:
        random = np.random.default_rng([self._seed, task])
        tweets = min(TWEETS_PER_TASK, self._tweets - task * TWEETS_PER_TASK)
        counts = np.searchsorted(self._count_shares, random.random(tweets), side="right")
        hashtags = np.searchsorted(self._hashtag_shares, random.random(int(counts.sum())))
        ends = np.cumsum(random.integers(*_TWEET_BYTES, tweets))
        first = np.repeat(np.cumsum(counts) - counts, counts)
        return _Drawn(
            np.concatenate([[0], ends[:-1]]),
            hashtags,
            np.repeat(np.arange(tweets), counts),
            np.arange(len(hashtags)) - first,
        )

    def _occurrences(self) -> list[npt.NDArray[np.uint8]]:
        """Of each spill the hashtags in it, a bit each."""
        occurs = []
        for task in range(self._tasks):
            drawn = self._draw(task)
            found = np.zeros((SPILLS, VOCABULARY), np.bool_)
            found[drawn.tweets // TWEETS_PER_SPILL, drawn.hashtags] = True
            occurs += list(np.packbits(found, axis=1))
        return occurs

    def _positions(self, occurs: Sequence[npt.NDArray[np.uint8]]) -> Numbers:
        """Where the line of each hashtag begins in its reducer's file."""
        anywhere = np.zeros(VOCABULARY, np.bool_)
        for packed in occurs:
            anywhere |= np.unpackbits(packed, count=VOCABULARY).view(np.bool_)
        sizes = self._line_bytes * anywhere
        positions = np.zeros(VOCABULARY, np.int64)
        for reducer in range(REDUCERS):
            positions[reducer::REDUCERS] = np.cumsum(sizes[reducer::REDUCERS]) - sizes[reducer::REDUCERS]
        return positions

    def _map(self, task: int, drawn: _Drawn) -> Iterator[bytes]:
        per_tweet = np.bincount(drawn.tweets, minlength=len(drawn.offsets))
        for begin, end in _in_messages(1 + per_tweet):
            tweets = np.arange(begin, end)
            first, last = np.searchsorted(drawn.tweets, [begin, end])
            of, number = drawn.tweets[first:last], drawn.numbers[first:last]
            rows = np.cumsum(1 + per_tweet[begin:end]) - per_tweet[begin:end] - 1
            tasks = np.full(len(tweets), task), np.full(len(of), task)
            yield self._document(
                (_MAP_USED, [rows, tasks[0], tweets, tasks[0], drawn.offsets[begin:end]]),
                (_MAP_MADE, [rows[of - begin] + 1 + number, tasks[1], of, number, tasks[1], of]),
            )

    def _combine(self, task: int, drawn: _Drawn) -> Iterator[bytes]:
        groups = drawn.tweets // TWEETS_PER_SPILL * VOCABULARY + drawn.hashtags
        order = np.argsort(groups, kind="stable")
        calls, uses = np.unique(groups, return_counts=True)
        bounds = np.cumsum([0, *uses])
        for begin, end in _in_messages(uses + 1):
            items = order[bounds[begin] : bounds[end]]
            made = np.cumsum(uses[begin:end] + 1) - 1
            of_made = [np.full(len(made), task), *np.divmod(calls[begin:end], VOCABULARY)]
            of_used = [np.repeat(column, uses[begin:end]) for column in of_made]
            yield self._document(
                (_COMBINE_USED, [_but(made), *of_used, of_used[0], drawn.tweets[items], drawn.numbers[items]]),
                (_COMBINE_MADE, [made, *of_made, *of_made]),
            )

    def _reduce(self, reducer: int, occurs: Sequence[npt.NDArray[np.uint8]], positions: Numbers) -> Iterator[bytes]:
        mine = np.array([np.unpackbits(packed, count=VOCABULARY)[reducer::REDUCERS] for packed in occurs], np.bool_)
        found, spills = np.nonzero(mine.T)
        hashtags, uses = np.unique(found * REDUCERS + reducer, return_counts=True)
        bounds = np.cumsum([0, *uses])
        for large in np.flatnonzero(uses > _MOST_INPUTS):
            yield from self._gather(reducer, hashtags[large], spills[bounds[large] : bounds[large + 1]], positions)
        for begin, end in _in_messages(np.where(uses > _MOST_INPUTS, 0, uses + 1)):
            small = uses[begin:end] <= _MOST_INPUTS
            chosen = np.repeat(small, uses[begin:end])
            used = spills[bounds[begin] : bounds[end]][chosen]
            own, own_uses = hashtags[begin:end][small], uses[begin:end][small]
            made = np.cumsum(own_uses + 1) - 1
            of = np.repeat(own, own_uses)
            if len(own):
                yield self._document(
                    (_REDUCE_USED, [_but(made), np.full(len(of), reducer), of, *np.divmod(used, SPILLS), of]),
                    (self._reduce_made, [made, own % REDUCERS, positions[own], own % REDUCERS, own]),
                )

    def _gather(self, reducer: int, hashtag: int, spills: Numbers, positions: Numbers) -> Iterator[bytes]:
        """An execution too large for a message: its inputs in collections of a message each."""
        parts = np.array_split(spills, -(-len(spills) // _ROWS))
        for number, part in enumerate(parts):
            same = [np.full(len(part), one) for one in (reducer, hashtag, number)]
            yield self._document((_GATHERED, [np.arange(len(part)), *same, *np.divmod(part, SPILLS), same[1]]))
        collections = np.arange(len(parts))
        same = [np.full(len(parts), one) for one in (reducer, hashtag)]
        made = [len(parts), reducer, positions[hashtag], reducer, hashtag]
        yield self._document(
            (_GATHERED_USED, [collections, *same, *same, collections]),
            (self._reduce_made, [np.array([one], np.int64) for one in made]),
        )

    def _document(self, *relations: tuple[_Relation, list[Numbers]]) -> bytes:
        room = len(self._prefix) + PADDING + sum(100 + one.row.size_of(len(columns[0])) for one, columns in relations)
        if len(self._buffer) < room:
            self._buffer = np.empty(room, np.uint8)
        at = self._put(self._prefix, 0)
        for (name, row), columns in relations:
            if len(columns[0]):
                at = self._put(f',"{name}":{{'.encode(), at)
                at = row.write(columns, self._buffer, at)
                at = self._put(b"}", at - 1)  # instead of the last comma
        return self._buffer[: self._put(b"}", at)].tobytes()

    def _put(self, text: bytes, at: int) -> int:
        self._buffer[at : at + len(text)] = np.frombuffer(text, np.uint8)
        return at + len(text)

    def _messages(
        self, function: str, task: int, documents: Iterator[bytes], attempts: dict[str, int]
    ) -> Iterator[Message]:
        """The messages of one attempt, numbered, and their count."""
        name = f"{_JOB}_{'r' if function == 'reduce' else 'm'}_{task:06}"
        attempt = f"attempt_{name}_0" + ("-combine" if function == "combine" else "")
        attempts[attempt] = 0
        for seq, document in enumerate(documents):
            headers = Headers(
                self.run, DIC, attempt, seq, task=f"task_{name}", function=function, node=f"worker-{task % _NODES}"
            )
            attempts[attempt] = seq + 1
            yield Message.of(headers, document)


def _in_messages(sizes: Numbers) -> Iterator[tuple[int, int]]:
    """Neighbouring executions that fill a message, by how many relations each has."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _ROWS, side="right")))
        yield begin, end
        begin = end


def _but(made: Numbers) -> Numbers:
    """The numbers from 0 up to the last given, without the given ones."""
    is_left = np.ones(int(made[-1]) + 1, np.bool_)
    is_left[made] = False
    return np.flatnonzero(is_left)
