"""The emitter keeps every execution whole, every message within bounds, and every dependency."""

from collections import Counter
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from provenance_store.model.document import Edge, read_document
from provenance_store.model.message import Headers, Message
from provenance_store.transport import emitter as module
from provenance_store.transport.emitter import Emitter
from provenance_store.transport.port import Delivery, Receipt

HEADERS = Headers(run="r", dic="d", attempt="a", seq=0, task="t", function="map")


class Kept:
    """A sink and receipts that keep what they get."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.posted: list[Receipt] = []

    def send(self, message: Message) -> None:
        self.messages.append(message)

    def close(self, timeout: float | None = None) -> Delivery:
        return Delivery(len(self.messages), 0)

    def post(self, receipt: Receipt) -> None:
        self.posted.append(receipt)

    def gather(self, run: str) -> list[Receipt]:
        return self.posted


def reach(messages: list[Message]) -> dict[str, set[str]]:
    """What each node can be traced back to, in any number of steps."""
    direct: dict[str, set[str]] = {}
    for message in messages:
        for edge in read_document(message.value):
            direct.setdefault(edge.dependent, set()).add(edge.dependency)
    closure: dict[str, set[str]] = {}
    for node in direct:
        seen: set[str] = set()
        stack = [node]
        while stack:
            for dependency in direct.get(stack.pop(), ()):
                if dependency not in seen:
                    seen.add(dependency)
                    stack.append(dependency)
        closure[node] = seen
    return closure


executions = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12)),
    max_size=12,
)


@given(executions, st.sampled_from([200, 1000, 100_000]), st.sampled_from([1200, 5000, 900_000]))
def test_every_execution_arrives_whole_whatever_the_sizes(shapes: list[tuple[int, int]], seal: int, most: int) -> None:
    kept = Kept()
    original = module.MAX_BYTES
    module.MAX_BYTES = most  # small limits reach the same code that only huge executions reach otherwise
    try:
        emitter = Emitter(kept, HEADERS, seal_bytes=min(seal, most // 2))
        for number, (inputs, outputs) in enumerate(shapes):
            emitter.emit(
                f"run:f{number}",
                [f"lake:d/v/f#{number * 1000 + i}" for i in range(inputs)],
                [f"run:f{number}.{o}" for o in range(outputs)],
            )
        receipt = emitter.close(kept.close, kept, "try")
    finally:
        module.MAX_BYTES = original
    assert receipt.messages == len(kept.messages)
    assert [m.headers["seq"] for m in kept.messages] == [str(n) for n in range(len(kept.messages))]
    assert all(len(m.value) <= most for m in kept.messages)

    closure = reach(kept.messages)
    for number, (inputs, outputs) in enumerate(shapes):
        expected = {f"urn:lake:d/v/f#{number * 1000 + i}" for i in range(inputs)}
        for o in range(outputs):
            reached = closure.get(f"urn:run:r:f{number}.{o}", set())
            assert {node for node in reached if node.startswith("urn:lake:")} == expected

    spread: dict[str, set[int]] = {}
    for position, message in enumerate(kept.messages):
        for edge in read_document(message.value):
            if edge.relation == "used":
                spread.setdefault(edge.dependent, set()).add(position)
            if edge.relation == "wasGeneratedBy":
                spread.setdefault(edge.dependency, set()).add(position)
    assert all(len(positions) == 1 for positions in spread.values()), "an execution is in two messages"


def test_many_executions_share_a_message() -> None:
    kept = Kept()
    emitter = Emitter(kept, HEADERS)
    for number in range(1000):
        emitter.emit(f"run:f{number}", [f"lake:d/v/f#{number}"], [f"run:i{number}"])
    emitter.close(kept.close, kept)
    assert len(kept.messages) == 1
    assert len(read_document(kept.messages[0].value)) == 2000


@given(st.sets(st.integers(0, 10**9)), st.sampled_from([200, 1000, 100_000]))
def test_executions_alike_are_told_as_if_one_by_one(numbers: set[int], seal: int) -> None:
    names = [str(number) for number in numbers]
    alike, single = Kept(), Kept()
    emitter = Emitter(alike, HEADERS, seal_bytes=seal, prefixes={"f": "urn:lake:d/v/f#"})
    emitter.emit("run:other", ["f:1"], ["run:1"])
    emitter.emit_each(names, activity="run:m-", used="f:", generated="run:m.")
    emitter.close(alike.close, alike)
    emitter = Emitter(single, HEADERS)
    emitter.emit("run:other", ["lake:d/v/f#1"], ["run:1"])
    for name in names:
        emitter.emit(f"run:m-{name}", [f"lake:d/v/f#{name}"], [f"run:m.{name}"])
    emitter.close(single.close, single)
    told, expected = ([edges_of(message) for message in kept.messages] for kept in (alike, single))
    assert sorted(chain.from_iterable(told)) == sorted(chain.from_iterable(expected))
    for edges in told:
        used = Counter(edge.dependent for edge in edges if edge.relation == "used")
        assert used == Counter(edge.dependency for edge in edges if edge.relation == "wasGeneratedBy")


def edges_of(message: Message) -> list[Edge]:
    return read_document(message.value)


def test_an_attempt_that_had_nothing_to_say_still_leaves_a_receipt() -> None:
    kept = Kept()
    assert Emitter(kept, HEADERS).close(kept.close, kept) == Receipt("r", "a", 0)
    assert kept.messages == []
