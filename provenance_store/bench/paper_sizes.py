"""Paper 003, Figure 16 and Table I: what the local reducers emit, and what is left after the global one."""

from collections.abc import Iterable, Sequence
from io import BytesIO

import msgspec

from provenance_store.bench.hashtag_stream import HashtagStream
from provenance_store.bench.paper_accuracy import EXACT, compare
from provenance_store.bench.paper_edges import Spelling
from provenance_store.model.document import RelationName
from provenance_store.model.message import MANIFEST, Message
from provenance_store.reduction.exact import reduce_messages
from provenance_store.reduction.local import reduce_locally
from provenance_store.reduction.schemas import RELATIONS
from provenance_store.reduction.strategies.elements import read_elements
from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.port import Element, Pair
from provenance_store.reduction.strategies.stages import GLOBAL_BATCH, LOCAL_BATCH, Stage
from provenance_store.services.service import Say
from provenance_store.transport.partitioning import PARTITIONINGS, vertical
from provenance_store.transport.port import Received

# As many as the paper had slaves; each of the three functions then has a partition by itself when horizontal.
PARTITIONS = 5
BATCHES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
GROUPING, UNBOUNDED = "grouping", "grouping, one global batch"


class LocalOut(msgspec.Struct, frozen=True, kw_only=True):
    """What the local reducers emitted of one partitioning with one batch size."""

    partitioning: str
    batch: int
    edges_in: int
    edges_out: int


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """One way's Table I: edges, and bytes of them as PROV-JSON, at three places.

    Of a hundred true dependencies, how many are found among the edges that come out, and how many by following them.
    """

    way: str
    edges_in: int
    edges_local: int
    edges_out: int
    bytes_in: int
    bytes_local: int
    bytes_out: int
    found: float
    followed: float
    parquet: int | None = None

    @property
    def edge_ratio(self) -> float:
        """How many times fewer edges come out than go in."""
        return self.edges_in / self.edges_out

    @property
    def size_ratio(self) -> float:
        """How many times smaller what comes out is."""
        return self.bytes_in / self.bytes_out


def measure_local(tweets: int, batches: Sequence[int], say: Say) -> list[LocalOut]:
    """Every partitioning with every batch size."""
    messages = read_provenance(HashtagStream(tweets))
    edges_in = sum(map(len, read_elements(messages)))
    rows = []
    for name, partitioning in PARTITIONINGS.items():
        arrivals = [
            (partitioning(message.headers, PARTITIONS), element)
            for message in messages
            for element in read_elements([message])
        ]
        for batch in batches:
            say(f"Local reducers: {name}, batches of {batch:,} edges")
            edges_out = sum(map(len, _reduce_locally(arrivals, batch)))
            rows.append(LocalOut(partitioning=name, batch=batch, edges_in=edges_in, edges_out=edges_out))
    return rows


def measure_sizes(tweets: int, say: Say) -> list[Size]:
    """Table I: grouping as in the paper, the same with a global reducer that keeps all, and the exact reduction."""
    stream = HashtagStream(tweets)
    messages = read_provenance(stream)
    truth = set(stream.dependencies().iter_rows())
    spelling = Spelling(stream.run)
    say("Table I: local reducers")
    flushed = _reduce_locally(
        (
            (vertical(message.headers, PARTITIONS), element)
            for message in messages
            for element in read_elements([message])
        ),
        LOCAL_BATCH,
    )
    edges_in = sum(len(element) for element in read_elements(messages))
    rows = []
    for way, batch in ((GROUPING, GLOBAL_BATCH), (UNBOUNDED, None)):
        say(f"Table I: {way}")
        emitted = reduce_globally(flushed, batch)
        local = [edge for group in flushed for edge in group]
        rows.append(
            Size(
                way=way,
                edges_in=edges_in,
                edges_local=len(local),
                edges_out=len(emitted),
                bytes_in=sum(len(message.value) for message in messages),
                bytes_local=spelling.weigh(local),
                bytes_out=spelling.weigh(emitted),
                found=_share(emitted, truth),
                followed=_share(spelling.follow([emitted]), truth),
            )
        )
    say("Table I: exact")
    return [*rows, _measure_exact(list(stream), spelling, truth)]


def read_provenance(stream: Iterable[Message]) -> list[Message]:
    """The messages of a stream without its manifest."""
    return [message for message in stream if message.headers.get("kind") != MANIFEST]


def reduce_globally(flushed: Iterable[Element], batch: int | None) -> list[Pair]:
    """What the global reducer emits of what local ones flushed."""
    stage = Stage(Grouping(), batch)
    emitted = [edge for element in flushed for group in stage.add(element) for edge in group]
    return emitted + [edge for group in stage.end() for edge in group]


def _reduce_locally(arrivals: Iterable[tuple[int, Element]], batch: int) -> list[Element]:
    """What local reducers flush, in the order in which they do."""
    stages = [Stage(Grouping(), batch) for _ in range(PARTITIONS)]
    flushed = [group for partition, element in arrivals for group in stages[partition].add(element)]
    return flushed + [group for stage in stages for group in stage.end()]


def _measure_exact(messages: Sequence[Message], spelling: Spelling, truth: set[Pair]) -> Size:
    (reduced,) = reduce_messages(Received(message, 0, offset) for offset, message in enumerate(messages))
    local = reduce_locally(messages, range(len(messages)), every_name=True).spelled()
    weights = 0
    for code in local["relation"].unique().to_list():
        relation: RelationName = RELATIONS[code]
        edges = local.filter(local["relation"] == code).select("dependent", "dependency").rows()
        weights += spelling.weigh(edges, relation)
    parquet = BytesIO()
    reduced.graph.write_parquet(parquet)
    share = _share(reduced.graph.iter_rows(), truth)
    return Size(
        way=EXACT,
        edges_in=reduced.account.edges_in,
        edges_local=reduced.account.edges_local,
        edges_out=reduced.account.edges_out,
        bytes_in=sum(len(message.value) for message in read_provenance(messages)),
        bytes_local=weights,
        bytes_out=spelling.weigh(reduced.graph.rows()),
        found=share,
        followed=share,
        parquet=len(parquet.getvalue()),
    )


def _share(emitted: Iterable[Pair], truth: set[Pair]) -> float:
    return compare("", 0, emitted, truth).share
