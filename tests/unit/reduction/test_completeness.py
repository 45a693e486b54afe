from itertools import permutations

import polars as pl
import pytest

from provenance_store.model.document import write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction.completeness import Judgement, judge
from provenance_store.reduction.local import reduce_locally

VALUE = write_document("r", [("wasDerivedFrom", "lake:a", "lake:b")])
STRAY = Message({}, VALUE)


def sent(attempt: str, seq: int, value: bytes = VALUE, run: str = "r") -> Message:
    return Message.of(Headers(run, "dic", attempt, seq), value)


def manifest(attempts: dict[str, int], generation: int = 0, run: str = "r", marks: list[str] | None = None) -> Message:
    value = Manifest(attempts=attempts, generation=generation, marks=marks or []).to_bytes()
    return Message.of(Headers(run, "dic", "", 0, kind=MANIFEST), value)


def judged(*messages: Message) -> list[Judgement]:
    return judge(reduce_locally(messages, range(len(messages))).messages)


def test_all_there_is_complete() -> None:
    (run,) = judged(sent("a", 0), manifest({"a": 2}, marks=["limit"]), sent("a", 1))
    assert (run.run, run.dic, run.verdict, run.missing, run.messages) == ("r", "dic", "complete", {}, 2)
    assert (run.bytes, run.marks, run.used["seq"].to_list()) == (2 * len(VALUE), ["limit"], [0, 1])


def test_what_is_missing_is_named() -> None:
    (run,) = judged(sent("a", 1), manifest({"a": 4, "b": 1, "c": 0}))
    assert (run.verdict, run.missing) == ("partial", {"a": [0, 2, 3], "b": [0]})


def test_without_a_manifest_nothing_is_known() -> None:
    (run,) = judged(sent("a", 0), sent("a", 5), sent("a", 5))
    assert (run.verdict, run.missing, run.duplicates, run.used.height) == ("unknown", {}, 1, 2)


def test_strays_do_not_change_a_satisfied_verdict() -> None:
    messages = (sent("a", 0), manifest({"a": 1}), sent("x", 0), sent("a", 1), sent("a", 0), STRAY, Message({}, b"?"))
    (run,) = judged(*messages)
    assert (run.verdict, run.discarded, run.duplicates, run.rejected.height) == ("complete", 3, 1, 1)
    assert run.messages == run.used.height + run.discarded + run.duplicates + run.rejected.height


def test_a_rejected_message_is_missing_unless_a_good_copy_came() -> None:
    (run,) = judged(sent("a", 0, b"?"), manifest({"a": 1}))
    assert (run.verdict, run.missing, run.rejected.height) == ("partial", {"a": [0]}, 1)
    (run,) = judged(sent("a", 0, b"?"), manifest({"a": 1}), sent("a", 0))
    assert (run.verdict, run.rejected.height, run.duplicates) == ("complete", 1, 0)


def test_the_highest_generation_holds_in_any_order() -> None:
    old, new = manifest({"a": 1, "b": 1}), manifest({"b": 1}, generation=2)
    for order in permutations([old, new, new, sent("a", 0), sent("b", 0)]):
        (run,) = judged(*order)
        assert (run.verdict, run.generation, run.discarded, run.messages) == ("complete", 2, 1, 2)


def test_manifests_that_contradict_each_other_are_settled_in_any_order() -> None:
    messages = [manifest({"a": 1}), manifest({"b": 1}), sent("a", 0)]
    assert len({(run.verdict, str(run.missing)) for order in permutations(messages) for run in judged(*order)}) == 1


def test_copies_that_differ_are_settled_in_any_order() -> None:
    other = write_document("r", [("wasDerivedFrom", "lake:a", "lake:c")])
    messages = [sent("a", 0), sent("a", 0, other), manifest({"a": 1})]
    crcs = {judged(*order)[0].used["crc"][0] for order in permutations(messages)}
    assert len(crcs) == 1


@pytest.mark.parametrize("others", [[], [sent("a", 0, run="r1"), sent("a", 0, run="r2")]])
def test_messages_without_headers_form_a_run_where_none_or_several_are_named(others: list[Message]) -> None:
    runs = {run.run: run for run in judged(STRAY, STRAY, *others)}
    assert list(runs) == [*(message.headers["run"] for message in others), "unknown"]
    assert (runs["unknown"].verdict, runs["unknown"].used.height, runs["unknown"].dic) == ("unknown", 2, "")


def test_messages_without_headers_join_the_one_run_that_has_no_manifest() -> None:
    (run,) = judged(STRAY, sent("a", 0))
    assert (run.run, run.verdict, run.used.height) == ("r", "unknown", 2)


def test_a_manifest_of_nothing_is_satisfied_by_nothing() -> None:
    (run,) = judged(manifest({}))
    assert (run.verdict, run.messages, run.used.height, run.names_records) == ("complete", 0, 0, False)


def test_no_message_no_run() -> None:
    assert judge(reduce_locally([], []).messages) == []
    assert isinstance(reduce_locally([], []).messages, pl.DataFrame)


def test_names_are_lacking_where_only_what_does_not_count_shows_a_record() -> None:
    def told(attempt: str, dependency: str) -> Message:
        return Message.of(
            Headers("r1", "d", attempt, 0), write_document("r1", [("wasDerivedFrom", "run:x", dependency)])
        )

    manifest = Message.of(Headers("r1", "d", "", 0, kind=MANIFEST), Manifest(attempts={"a": 1}).to_bytes())
    messages = [told("a", "run:y"), told("b", "lake:z"), manifest]
    (judgement,) = judge(reduce_locally(messages, range(3)).messages)
    assert (judgement.names_records, judgement.lacks_names) == (False, True)
    (judgement,) = judge(reduce_locally(messages[:2], range(2)).messages)
    assert (judgement.names_records, judgement.lacks_names) == (True, False)
