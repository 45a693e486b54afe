"""Inferred ancestors are true wherever inference says so, and none is left out anywhere; backward and forward."""

import numpy as np
from hypothesis import given

from provenance_store.streams.event import EventKey
from provenance_store.streams.inference import Inference, accuracy
from provenance_store.streams.keys import Keys
from provenance_store.streams.operators import is_derivable
from provenance_store.streams.reference import Streams, ancestors
from provenance_store.streams.replay import replay
from tests.property.stream_queries import Case, cases


def infer(case: Case) -> tuple[Inference, Streams]:
    sources, _ = case.run_engine()
    streams = case.run_reference(sources)
    needed = {one.name for one in case.query.operators if not is_derivable(one)} | {s.name for s in case.query.sources}
    stored = {name: Keys.of(name, (event.key for event in streams[name])) for name in needed}
    return Inference(case.query, stored, case.until), streams


@given(cases())
def test_keys_that_nobody_stored_follow_from_others(case: Case) -> None:
    inference, streams = infer(case)
    for name, events in streams.items():
        assert inference.keys(name).rows() == [event.key for event in events]


@given(cases())
def test_every_step_is_true_where_certain_and_leaves_nothing_out(case: Case) -> None:
    inference, streams = infer(case)
    for name, step in inference.steps.items():
        places = np.arange(len(streams[name]))
        spans = step.spans(places)
        for place, event in enumerate(streams[name]):
            true = set(event.parents)
            found, certain = set(), set()
            for read, span in zip(step.one.inputs, spans, strict=True):
                keys = [one.key for one in streams[read]]
                found.update(keys[span.first[place] : span.last[place] + 1])
                certain.update(keys[span.certain_first[place] : span.certain_last[place] + 1])
            assert certain <= true <= found
            if step.rule.makes is not None and step.rule.from_ != "some":
                assert certain == found


@given(cases())
def test_sources_of_any_event_are_true_where_certain_and_none_is_left_out(case: Case) -> None:
    inference, streams = infer(case)
    for name, events in streams.items():
        found = inference.backward(name, np.arange(len(events)))
        for source, pairs in found.items():
            keys = [event.key for event in streams[source]]
            true = {(row, key) for row, event in enumerate(events) for key in _of(case, streams, event.key, source)}
            given_pairs = [(int(row), keys[place]) for row, place in zip(pairs.rows, pairs.places, strict=True)]
            assert true <= set(given_pairs)
            assert len(set(given_pairs)) == len(given_pairs)
            assert {pair for pair, certain in zip(given_pairs, pairs.certain, strict=True) if certain} <= true
        for row, (event, share) in enumerate(zip(events, accuracy(found, len(events)), strict=True)):
            many = sum(int((pairs.rows == row).sum()) for pairs in found.values())
            assert 0 < share <= len(ancestors(case.query, streams, event.key)) / many


@given(cases())
def test_forward_is_backward_the_other_way_round(case: Case) -> None:
    inference, streams = infer(case)
    for source in case.query.sources:
        forward = inference.forward(source.name, np.arange(len(streams[source.name])))
        for name, events in streams.items():
            back = inference.backward(name, np.arange(len(events))).get(source.name)
            there = forward.get(name)
            mirrored = (
                set()
                if there is None
                else set(zip(there.places.tolist(), there.rows.tolist(), there.certain, strict=True))
            )
            assert mirrored == (
                set() if back is None else set(zip(back.rows.tolist(), back.places.tolist(), back.certain, strict=True))
            )


def _of(case: Case, streams: Streams, key: EventKey, source: str) -> set[EventKey]:
    return {one for one in ancestors(case.query, streams, key) if one.stream == source}


@given(cases())
def test_a_replay_makes_every_event_again_and_tells_its_true_ancestors(case: Case) -> None:
    inference, streams = infer(case)
    for name, step in inference.steps.items():
        places = np.arange(len(streams[name]))[::2]
        replayed = replay(inference, lambda s, at: [streams[s][place].content for place in at], name, places)
        for place in places.tolist():
            event = streams[name][place]
            assert replayed.contents[name][place] == event.content
            true = ancestors(case.query, streams, event.key)
            assert {streams[s][at].key for s, at in replayed.ancestors(name, place)} == true
        assert not replayed.differences(
            {streams[name][place].key: streams[name][place].content for place in places.tolist()}
        )
        assert step.one.name in replayed.contents
