"""Live forward provenance against brute force, however it was cut into steps, put away, and repeated after a crash."""

from dataclasses import dataclass
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import JobError, MessageError
from provenance_store.model.message import Message
from provenance_store.streams import live_messages
from provenance_store.streams.event import END
from provenance_store.streams.live import Edge, Element, Expired, Live, Result, SinkVertex, SourceVertex
from provenance_store.streams.live_messages import LiveMessage, Once, read_message, split_step, topic_of
from provenance_store.streams.reach import reach
from tests.property.stream_queries import Case, cases

Steps = list[tuple[int, list[Result]]]


@dataclass(frozen=True)
class Flow:
    """Results in the order of making, by steps with the watermark that each came to; the last ends the run."""

    reach: int
    steps: Steps

    def alive_after(self, step: int) -> set[str]:
        """The sources that still lead to something: the truth, which no engine knows better."""
        return {source for _, results in self.steps[step + 1 :] for one in results for source, _ in one.sources}


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    far = draw(st.integers(0, 12))
    times = draw(st.lists(st.integers(0, 40), min_size=1, max_size=25))
    sources = [(f"lake:in/{at}", time) for at, time in enumerate(times)]
    steps: Steps = []
    passed = draw(st.integers(-5, 5))
    for number in range(draw(st.integers(1, 8))):
        until = passed + draw(st.integers(0, 10))
        results = []
        for at in range(draw(st.integers(0, 4)) if until > passed else 0):
            # What takes long to make has a time that the watermark has not come to.
            time = draw(st.integers(passed, until + 3))
            near = [one for one in sources if max(passed, time) - far <= one[1] <= time]
            if near:
                chosen = draw(st.lists(st.sampled_from(near), min_size=1, max_size=6))
                results.append(Result(f"lake:out/{number}-{at}", time, chosen))
        steps.append((until, results))
        passed = until
    return Flow(far, [*steps, (END, [])])


def tell(flow: Flow, *, exact: bool = False, bounded: bool = True) -> list[list[Element]]:
    """What is told in each step, with the state put away after each."""
    state, told = None, []
    for number, (watermark, results) in enumerate(flow.steps):
        live = Live(flow.reach if bounded else None, state)
        elements = live.take(watermark, results)
        told.append(elements + live.advance(watermark, flow.alive_after(number) if exact else None))
        state = live.put_away()
    return told


def check_requirements(elements: list[Element]) -> None:
    """R-V, R-E and R-L of the paper, by order and by watermarks."""
    vertices: dict[str, int] = {}
    edges: dict[tuple[str, str], int] = {}
    labels: dict[str, int] = {}
    at = elements[0].at if elements else 0
    for one in elements:
        assert one.at >= at
        at = one.at
        match one:
            case SourceVertex() | SinkVertex():
                assert one.id not in vertices
                vertices[one.id] = at
            case Edge():
                assert (one.output, one.input) not in edges
                assert {one.output, one.input} <= vertices.keys()
                assert not {one.output, one.input} & labels.keys()
                edges[one.output, one.input] = at
            case Expired():
                assert one.id in vertices
                assert one.id not in labels
                labels[one.id] = at


def expect(flow: Flow, *, exact: bool, bounded: bool) -> set[Element]:
    """The graph by its definition, each label at the first watermark at which it is true."""
    expected: set[Element] = set()
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    times: dict[str, int] = {}
    for number, (watermark, results) in enumerate(flow.steps):
        for one in results:
            expected |= {SinkVertex(watermark, one.id, one.time), Expired(watermark, one.id)}
            for source, time in one.sources:
                first.setdefault(source, number)
                last[source], times[source] = number, time
                expected.add(Edge(watermark, one.id, source))
    for source, time in times.items():
        expected.add(SourceVertex(flow.steps[first[source]][0], source, time))
        dead = (
            watermark
            for number, (watermark, _) in enumerate(flow.steps)
            if number >= first[source]
            and (watermark == END or (bounded and time < watermark - flow.reach) or (exact and number >= last[source]))
        )
        expected.add(Expired(next(dead), source))
    return expected


@pytest.mark.parametrize(("exact", "bounded"), [(False, True), (True, True), (True, False), (False, False)])
@given(flow=flows())
def test_all_is_told_once_in_order_and_at_the_first_watermark(flow: Flow, exact: bool, bounded: bool) -> None:
    steps = tell(flow, exact=exact, bounded=bounded)
    elements = [one for step in steps for one in step]
    check_requirements(elements)
    assert len(elements) == len(set(elements))
    assert set(elements) == expect(flow, exact=exact, bounded=bounded)
    for step in steps:
        expired = [one.id for one in step if isinstance(one, Expired) and one.id.startswith("lake:in/")]
        times = {source: time for _, results in flow.steps for one in results for source, time in one.sources}
        assert expired == sorted(expired, key=lambda source: (times[source], source))


@given(flow=flows(), data=st.data())
def test_where_steps_are_cut_changes_when_it_is_told_and_not_what(flow: Flow, data: st.DataObject) -> None:
    """Two steps as one, at the later watermark: the same graph."""
    merged: Steps = []
    waiting: list[Result] = []
    for watermark, results in flow.steps:
        waiting += results
        if watermark == END or data.draw(st.booleans()):
            merged.append((watermark, waiting))
            waiting = []
    assert graph_of(tell(Flow(flow.reach, merged))) == graph_of(tell(flow))


def graph_of(steps: list[list[Element]]) -> set[tuple[object, ...]]:
    """What is told, whenever."""
    fields = [[getattr(one, name) for name in one.__struct_fields__ if name != "at"] for step in steps for one in step]
    kinds = [type(one) for step in steps for one in step]
    return {(kind, *rest) for kind, rest in zip(kinds, fields, strict=True)}


@given(flow=flows(), data=st.data())
def test_steps_repeated_after_crashes_are_taken_once(flow: Flow, data: st.DataObject) -> None:
    sent: list[Message] = []
    states: list[bytes | None] = [None]
    crashes = data.draw(st.integers(0, 4))
    with patch.object(live_messages, "MOST_ELEMENTS", data.draw(st.integers(1, 6))):
        while len(states) <= len(flow.steps):
            step = len(states) - 1
            watermark, results = flow.steps[step]
            live = Live(flow.reach, states[-1])
            elements = live.take(watermark, results) + live.advance(watermark)
            messages = split_step(
                elements, run="r", query="q", bucket=3, step=step, watermark=watermark, reach=flow.reach
            )
            parts = [one.to_message() for one in messages]
            if crashes and data.draw(st.booleans()):
                # Some parts of the step were sent, and the job goes on from a checkpoint that may be older.
                crashes -= 1
                sent += parts[: data.draw(st.integers(0, len(parts)))]
                del states[data.draw(st.integers(1, len(states))) :]
            else:
                sent += parts
                states.append(live.put_away())
    once = Once()
    read = [read_message(message) for message in sent]
    taken = [one for one in read if once.is_new(one)]
    assert [(one.step, one.part) for one in taken] == sorted({(one.step, one.part) for one in taken})
    assert [one for message in taken for one in message.elements] == [one for step in tell(flow) for one in step]
    # Whoever goes on later from what was seen takes nothing twice either.
    assert not any(Once(once.seen).is_new(one) for one in read)
    again = Once()
    new = [one for one in read[: len(read) // 2] if again.is_new(one)]
    resumed = Once(again.seen)
    assert new + [one for one in read[len(read) // 2 :] if resumed.is_new(one)] == taken


@given(case=cases(measured=False))
def test_a_query_at_work_is_told_as_its_ancestors_are(case: Case) -> None:
    """With the reach that its windows tell, no source expires before its last result."""
    far = reach(case.query)
    sources, made = case.run_engine()
    parents = {event.key: event.parents for events in (*sources.values(), *made.values()) for event in events}

    def ancestors(key: object) -> set[tuple[str, int]]:
        above = parents[key]  # type: ignore[index]
        if above:
            return {one for parent in above for one in ancestors(parent)}
        return {(f"{key.stream}/{key.sequence}", key.timestamp)}  # type: ignore[attr-defined]

    stream = case.query.sinks[0].stream
    engine, live, told, edges = case.engine(), Live(far), [], set()
    for batch, until in [*case.batches, ([], END)]:
        engine.add(batch)
        if engine.until >= until:
            continue
        entered, streams = engine.advance(until)
        parents |= {event.key: event.parents for events in streams.values() for event in events}
        parents |= {event.key: () for event, _ in entered}
        results = [
            Result(f"out/{one.key.sequence}", one.key.timestamp, sorted(ancestors(one.key)))
            for one in streams.get(stream, [])
        ]
        edges |= {(one.id, source) for one in results for source, _ in one.sources}
        told += live.take(until, results) + live.advance(until)
    check_requirements(told)
    assert {(one.output, one.input) for one in told if isinstance(one, Edge)} == edges
    assert live.unexpired == 0


def test_state_holds_what_may_still_lead_to_something_and_no_more() -> None:
    live, sizes = Live(10), []
    for time in range(200_000, 210_000, 10):
        live.take(time, [Result(f"out/{time}", time, [(f"in/{time - at}", time - at) for at in range(10)])])
        live.advance(time)
        sizes.append(len(live.put_away()))
    assert live.unexpired == 11
    assert len(set(sizes[1:])) == 1


def test_a_result_of_what_had_expired_is_refused() -> None:
    live = Live(10)
    live.take(0, [Result("out/1", 0, [("in/1", 0)])])
    assert live.advance(11) == [Expired(11, "in/1")]
    with pytest.raises(JobError, match="in/1, which had expired: all before 1 had, by a reach of 10 ms"):
        live.take(11, [Result("out/2", 11, [("in/1", 0)])])


def test_a_watermark_that_goes_back_is_refused() -> None:
    live = Live(10)
    live.advance(5)
    with pytest.raises(JobError, match="went back from 5 to 4"):
        live.take(4, [])


def step(elements: list[Element]) -> list[LiveMessage]:
    return list(split_step(elements, run="r", query="q", bucket=0, step=1, watermark=9, reach=None))


def test_elements_are_the_lists_of_the_contract() -> None:
    elements: list[Element] = [
        SourceVertex(9, "lake:a", 1),
        SinkVertex(9, "lake:b", 2),
        Edge(9, "lake:b", "lake:a"),
        Expired(9, "lake:b"),
    ]
    (message,) = step(elements)
    assert message.key == "r/0"
    assert topic_of("q") == "headwater.live.q"
    sent = message.to_message()
    assert sent.headers == {"run": "r", "query": "q", "kind": "live", "schema": "1"}
    assert sent.value == (
        b'{"run":"r","query":"q","bucket":0,"step":1,"part":0,"watermark":9,"reach":null,"elements":['
        b'["source",9,"lake:a",1],["sink",9,"lake:b",2],["edge",9,"lake:b","lake:a"],["expired",9,"lake:b"]],'
        b'"reads":[]}'
    )
    assert read_message(sent) == message
    assert END == 1152921504606846976


def test_steps_are_parted_and_even_an_empty_one_tells_how_far_it_came() -> None:
    assert [len(one.elements) for one in step([Expired(1, str(at)) for at in range(10_001)])] == [5_000, 5_000, 1]
    assert [(one.part, one.watermark) for one in step([])] == [(0, 9)]


@pytest.mark.parametrize(
    ("headers", "value", "said"),
    [
        ({"kind": "manifest"}, b"{}", "kind 'manifest' is none of live provenance"),
        ({}, b"{}", "kind None is none of live provenance"),
        ({"kind": "live", "schema": "2"}, b"{}", "schema '2' is not known here"),
        ({"kind": "live", "run": "r"}, b"{}", "of run 'r' cannot be read: Object missing required field `run`"),
        ({"kind": "live", "run": "r"}, b"{", "of run 'r' cannot be read: Input data was truncated"),
        ({"kind": "live"}, step([])[0].to_message().value.replace(b'"part":0', b'"part":-1'), ">= 0"),
        ({"kind": "live"}, step([])[0].to_message().value.replace(b"[]", b'[["vertex",1,"a"]]'), "Invalid value"),
        ({"kind": "live"}, step([])[0].to_message().value.replace(b"[]", b'[["edge",1,"a"]]'), "at least length 4"),
        ({"kind": "live", "run": "s"}, step([])[0].to_message().value, "'s' by its headers and of 'r' by its value"),
    ],
)
def test_what_is_no_live_message_is_said_so(headers: dict[str, str], value: bytes, said: str) -> None:
    with pytest.raises(MessageError, match=said):
        read_message(Message(headers, value))
