import json

import pytest

from provenance_store.model.document import write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction import pieces
from provenance_store.reduction.local import LocalReduction, reduce_locally
from provenance_store.reduction.schemas import DERIVED, GENERATED, MEMBER, USED

HASH_OF_LAKE_A = (-43985266265297328, -1719713206734621303)
HEADERS = Headers("r1", "hashtags", "map-0", 3)


def reduce(messages: list[Message], **options: bool) -> LocalReduction:
    return reduce_locally(messages, range(len(messages)), **options)


def document(**relations: dict[str, object]) -> bytes:
    return json.dumps({"prefix": {"lake": "urn:lake:", "run": "urn:run:r1:"}, **relations}).encode()


def test_every_relation_becomes_an_edge_with_expanded_ids() -> None:
    value = write_document(
        "r1",
        [
            ("used", "run:f", "lake:in#0"),
            ("wasGeneratedBy", "lake:out#0", "run:f"),
            ("wasDerivedFrom", "lake:out#0", "run:i"),
            ("hadMember", "run:i", "lake:in#1"),
        ],
    )
    told = reduce_locally([Message({}, value)], [7], every_name=True)
    assert told.spelled().rows() == [
        (7, USED, "urn:run:r1:f", "urn:lake:in#0"),
        (7, GENERATED, "urn:lake:out#0", "urn:run:r1:f"),
        (7, DERIVED, "urn:lake:out#0", "urn:run:r1:i"),
        (7, MEMBER, "urn:run:r1:i", "urn:lake:in#1"),
    ]
    (row,) = reduce_locally([Message.of(HEADERS, value)], [7]).messages.rows(named=True)
    assert (row["message"], row["run"], row["dic"], row["attempt"], row["seq"]) == (7, "r1", "hashtags", "map-0", 3)
    assert (row["edges"], row["bytes"], row["lake"], row["reason"]) == (4, len(value), True, None)


def test_other_prefixes_for_the_same_namespaces_mean_the_same() -> None:
    other = {
        "prefix": {"l": "urn:lake:", "rest": "urn:"},
        "wasDerivedFrom": {"_:1": {"prov:generatedEntity": "l:a", "prov:usedEntity": "rest:lake:b"}},
    }
    ours = write_document("r1", [("wasDerivedFrom", "lake:a", "lake:b")])
    both = reduce([Message({}, json.dumps(other).encode()), Message({}, ours)])
    assert both.edges().drop("message").n_unique() == 1
    assert set(both.names()["id"]) == {"lake:a", "lake:b"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "a list"),
        (b"null", "not an object"),
        (b'"\\ud800"', "not JSON"),
        (document(used=[]), "used is a list"),
        (document(used={"_:1": {"prov:activity": 1, "prov:entity": "lake:a"}}), "a number"),
        (document(used={"_:1": {"prov:activity": "run:f"}}), "missing"),
        (document(used={"_:1": {"prov:activity": "run:f", "prov:entity": "nope:a"}}), "no declared prefix"),
        (document(used={"_:1": {"prov:activity": "run:f", "prov:entity": "plain"}}), "no declared prefix"),
        (document(wasDerivedFrom={"_:1": {"prov:generatedEntity": ["lake:a"], "prov:usedEntity": "lake:b"}}), "a list"),
    ],
)
def test_poison_keeps_its_row_with_the_reason_and_harms_no_other(value: bytes, reason: str) -> None:
    good = write_document("r1", [("wasDerivedFrom", "lake:a", "lake:b")])
    messages, edges, *_ = reduce([Message.of(HEADERS, value), Message.of(HEADERS, good)])
    assert reason in messages["reason"][0]
    assert messages["reason"][1] is None
    assert messages["attempt"][0] == "map-0"
    assert edges.document.tolist() == [1]


@pytest.mark.parametrize(
    ("headers", "run", "reason"),
    [
        ({"run": "r1", "seq": "0"}, "r1", "'attempt' is missing"),
        ({"run": "r1", "attempt": "a", "seq": "-1"}, "r1", "not a whole number"),
        ({"run": "r1", "attempt": "a", "seq": "9" * 30}, "r1", "18 digits"),
        ({"run": "r1", "attempt": "a", "seq": "9" * 5000}, "r1", "digits"),
        ({"run": "r1", "attempt": "a", "seq": "0", "schema": "9"}, "r1", "schema '9'"),
        ({"run": "r1", "attempt": "a", "seq": "0", "kind": "x"}, "r1", "kind 'x'"),
        ({"attempt": "a", "seq": "0"}, None, "'run' is missing"),
    ],
)
def test_headers_out_of_contract_are_a_reason(headers: dict[str, str], run: str | None, reason: str) -> None:
    messages, edges, *_ = reduce([Message(headers, write_document("r1", [("wasDerivedFrom", "lake:a", "lake:b")]))])
    assert reason in messages["reason"][0]
    assert (messages["run"][0], messages["attempt"][0], len(edges.document)) == (run, None, 0)


def test_a_message_without_headers_names_no_run() -> None:
    messages = reduce([Message({"someone": "else"}, b"{}")]).messages
    assert (messages["run"][0], messages["reason"][0], messages["lake"][0]) == (None, None, False)


def test_manifests_keep_their_bytes_and_bad_ones_the_reason() -> None:
    headers = Headers("r1", "d", "", 0, kind=MANIFEST)
    good = Manifest(attempts={"a": 2}).to_bytes()
    bad = [b"{}", b'{"attempts":{"a":-1}}', b'{"attempts":{"a":99999999999}}', b'{"attempts":{},"generation":1e3}']
    messages = reduce([Message.of(headers, value) for value in (good, *bad)]).messages
    assert messages["manifest"].to_list()[0] == good
    assert [reason is None for reason in messages["reason"]][:4] == [True, False, False, False]


def test_an_activity_in_the_lakes_namespace_is_no_record() -> None:
    value = write_document("r1", [("used", "lake:job", "run:a"), ("wasGeneratedBy", "run:b", "lake:job")])
    assert reduce([Message({}, value)]).messages["lake"].to_list() == [False]


def test_nothing_reduces_to_empty_tables() -> None:
    local = reduce([])
    assert (local.messages.height, local.edges().height, local.names().height) == (0, 0, 0)


def test_executions_go_where_a_message_with_headers_promises_them_whole() -> None:
    value = write_document("r1", [("used", "run:f", "lake:in#0"), ("wasGeneratedBy", "run:x", "run:f")])
    local = reduce([Message.of(HEADERS, value), Message({}, value)], every_name=True)
    assert local.spelled().rows() == [
        (0, DERIVED, "urn:run:r1:x", "urn:lake:in#0"),
        (1, USED, "urn:run:r1:f", "urn:lake:in#0"),
        (1, GENERATED, "urn:run:r1:x", "urn:run:r1:f"),
    ]


def test_edges_are_between_hashes_that_tell_what_is_in_the_lake() -> None:
    value = write_document("r1", [("wasDerivedFrom", "run:x", "lake:a"), ("wasDerivedFrom", "lake:b", "run:x")])
    (x, a), (b, again) = (
        ((row["dependent_hi"], row["dependent_lo"]), (row["dependency_hi"], row["dependency_lo"]))
        for row in reduce([Message.of(HEADERS, value)]).edges().rows(named=True)
    )
    assert x == again
    assert [lo & 1 for _, lo in (x, a, b)] == [0, 1, 1]
    # The same in every process and release: graphs in parts, reduced at different times, must meet.
    assert a == HASH_OF_LAKE_A


def test_names_outside_the_lake_are_left_out_for_a_run_that_shows_a_record() -> None:
    def told(run: str, attempt: str, dependency: str) -> Message:
        headers = Headers(run, "d", attempt, 0)
        return Message.of(headers, write_document(run, [("wasDerivedFrom", f"run:{attempt}", dependency)]))

    messages = [
        told("r1", "a", "lake:x"),
        told("r1", "b", "run:y"),
        told("r2", "c", "run:z"),
        told("r1", "d", "lake:x"),
    ]
    names = reduce(messages).names()
    assert sorted(names.select("id", "lake").rows()) == [
        ("lake:x", True),
        ("urn:run:r2:c", False),
        ("urn:run:r2:z", False),
    ]
    assert reduce(messages, every_name=True).names().height == 7
    ends = {row[2:4] for row in reduce(messages).edges().rows()} | {row[4:] for row in reduce(messages).edges().rows()}
    assert {row[:2] for row in names.rows()} <= ends


def test_pieces_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [
        write_document("r", [("used", f"run:{n}", "lake:a"), ("wasGeneratedBy", "run:x", f"run:{n}")]) for n in "ab"
    ]
    messages = [Message.of(HEADERS, value) for value in (values[0], b"poison", values[1])]
    whole = reduce(messages)
    monkeypatch.setattr(pieces, "_PIECE_BYTES", 1)
    apart = reduce(messages)
    assert apart.messages.equals(whole.messages)
    assert apart.edges().sort("message").equals(whole.edges().sort("message"))
    assert apart.names().sort("id").equals(whole.names().sort("id"))
