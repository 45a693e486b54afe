"""The engine, fed in any order and put away between batches, makes what the definitions say; queries are continuous."""

from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.streams.query import StreamQuery
from tests.property.stream_queries import Case, cases, queries


@given(cases())
def test_the_engine_makes_what_the_reference_makes(case: Case) -> None:
    sources, made = case.run_engine()
    expected = case.run_reference(sources)
    for one in case.query.operators:
        # What takes time to make is there before its time has come, and is known of only then.
        known = [event for event in made[one.name] if event.key.timestamp < case.until]
        assert known == expected[one.name]


@given(cases())
def test_what_was_late_took_no_part_and_all_else_did(case: Case) -> None:
    sources, _ = case.run_engine()
    taking_part = {
        (name, event.key.timestamp, event.content["v"]) for name, events in sources.items() for event in events
    }
    passed = 0
    for arrivals, until in case.batches:
        for one in arrivals:
            if passed <= one.time < case.until:
                assert (one.source, one.time, one.content["v"]) in taking_part
        passed = max(passed, until)
    for events in sources.values():
        assert [event.key.sequence for event in events] == list(range(1, len(events) + 1))
        assert [event.key.timestamp for event in events] == sorted(event.key.timestamp for event in events)


@given(cases(), st.data())
def test_a_prefix_of_the_sources_makes_a_prefix_of_every_stream(case: Case, data: st.DataObject) -> None:
    """Continuity: the least upper bound of what prefixes make is what the whole makes."""
    sources, _ = case.run_engine()
    whole = case.run_reference(sources)
    chain = sorted(data.draw(st.lists(st.integers(0, case.until), min_size=1, max_size=4)))
    longest = dict.fromkeys(whole, 0)
    for until in [*chain, case.until]:
        prefix = {name: [event for event in events if event.key.timestamp < until] for name, events in sources.items()}
        for name, events in case.run_reference(prefix, until).items():
            assert events == whole[name][: len(events)]
            assert len(events) >= longest[name]
            longest[name] = len(events)
    assert longest == {name: len(events) for name, events in whole.items()}


@settings(max_examples=100)
@given(queries())
def test_a_query_is_what_its_json_says(query: StreamQuery) -> None:
    assert StreamQuery.from_json(query.to_json()) == query
