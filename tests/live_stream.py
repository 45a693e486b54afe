"""A stream query's live provenance as it would be told, by the rules of paper 004, and what is true after each message.

R-V: each vertex is told once. R-E: an edge is told once, after its vertices. R-L: a vertex is told to have expired
once, after all its edges. Written for tests from these sentences alone.
"""

import itertools
import random
from collections import Counter
from dataclasses import dataclass, field

from provenance_store.streams.event import END
from provenance_store.streams.live import Edge, Expired, SinkVertex, SourceVertex
from provenance_store.streams.live_messages import LiveMessage

REACH = 100


@dataclass
class Truth:
    """What the lake graph has to hold of a run, after some of its messages."""

    vertices: set[str] = field(default_factory=set)
    edges: Counter[tuple[str, str]] = field(default_factory=Counter)
    live: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    watermarks: dict[int, int] = field(default_factory=dict)

    def take(self, message: LiveMessage) -> None:
        self.watermarks[message.bucket] = message.watermark
        for element in message.elements:
            match element:
                case SourceVertex(id=name):
                    self.vertices.add(name)
                    self.live.add(name)
                case SinkVertex(id=name):
                    self.vertices.add(name)
                case Edge(output=output, input=source):
                    assert {output, source} <= self.vertices
                    assert not {output, source} & self.expired
                    self.edges[output, source] += 1
                case Expired(id=name):
                    self.live.discard(name)
                    self.expired.add(name)


def tell_stream(word: str, bucket: int, rng: random.Random, *, steps: int = 8, ends: bool = True) -> list[LiveMessage]:
    """The messages of one bucket, in order: sources of `<word>-in`, results of `<word>-out`, of the run `<word>`."""
    told: dict[str, int] = {}
    watermark, made, messages = 0, 0, []
    for step in range(steps):
        elements: list = []
        for _ in range(rng.randint(0, 4)):
            inputs = set(rng.sample(sorted(told), min(len(told), rng.randint(0, 2))))
            for _ in range(rng.randint(0 if inputs else 1, 3)):
                made += 1
                new = f"lake:{word}-in/{word}/part-{bucket}.jsonl#{made}"
                told[new] = rng.randint(watermark - REACH, watermark + 30)
                elements.append(SourceVertex(watermark, new, told[new]))
                inputs.add(new)
            made += 1
            result = f"lake:{word}-out/{word}/part-{bucket}.jsonl#{made}"
            elements.append(SinkVertex(watermark, result, watermark))
            elements += [Edge(watermark, result, one) for one in sorted(inputs)]
            elements.append(Expired(watermark, result))
        is_last = ends and step == steps - 1
        watermark = END if is_last else watermark + rng.randint(0, 80)
        gone = sorted(one for one, time in told.items() if is_last or time < watermark - REACH)
        for one in gone:
            del told[one]
        elements += [Expired(watermark, one) for one in gone]
        cuts = sorted({0, *(rng.randint(0, len(elements)) for _ in range(rng.randint(0, 2))), len(elements)})
        parts = list(itertools.pairwise(cuts)) or [(0, 0)]
        for part, (begin, end) in enumerate(parts):
            messages.append(
                message(word, elements[begin:end], bucket=bucket, step=step, part=part, watermark=watermark)
            )
    return messages


def message(run: str, elements: list, *, bucket=0, step=0, part=0, watermark=0) -> LiveMessage:
    return LiveMessage(
        run=run,
        query=f"{run}-query",
        bucket=bucket,
        step=step,
        part=part,
        watermark=watermark,
        reach=REACH,
        elements=elements,
    )


def interleaved(buckets: list[list[LiveMessage]], rng: random.Random) -> list[LiveMessage]:
    """All messages, each bucket's in its order, with repeats: some again at once, and whole beginnings again later."""
    left = [list(bucket) for bucket in buckets]
    told: list[LiveMessage] = []
    while any(left):
        own = rng.choice([bucket for bucket in left if bucket])
        told.append(own.pop(0))
        if rng.random() < 0.2:
            told.append(told[-1])
        if rng.random() < 0.1:
            # A consumer that died before its offsets were committed reads its partition again.
            again = [one for one in told if one.bucket == told[-1].bucket]
            told += again[-rng.randint(1, 5) :]
    return told
