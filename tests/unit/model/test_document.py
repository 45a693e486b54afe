import json

import pytest

from provenance_store.errors import DocumentError
from provenance_store.model.document import Edge, compact, read_document

PREFIX = {"lake": "urn:lake:", "run": "urn:run:r1:"}


def document(**elements: object) -> bytes:
    return json.dumps({"prefix": PREFIX, **elements}).encode()


def test_everything_but_the_four_relations_is_filtered_out() -> None:
    value = document(
        entity={"lake:a/v/f#0": {"prov:label": "a tweet"}},
        agent={"run:someone": {}},
        wasAssociatedWith={"_:1": {"prov:activity": "run:f", "prov:agent": "run:someone"}},
        used={"_:2": {"prov:activity": "run:f", "prov:entity": "lake:a/v/f#0", "prov:role": "input"}},
    )
    assert read_document(value) == [Edge("used", "urn:run:r1:f", "urn:lake:a/v/f#0")]


def test_several_relations_under_one_id_and_several_members_are_all_read() -> None:
    value = document(
        used={"run:u": [{"prov:activity": "run:f", "prov:entity": f"run:{n}"} for n in "ab"]},
        hadMember={"_:1": {"prov:collection": "run:c", "prov:entity": ["run:a", "run:b"]}},
    )
    assert [(e.relation, compact(e.dependency)) for e in read_document(value)] == [
        ("used", "urn:run:r1:a"),
        ("used", "urn:run:r1:b"),
        ("hadMember", "urn:run:r1:a"),
        ("hadMember", "urn:run:r1:b"),
    ]


def test_a_bundle_is_read_with_the_documents_prefixes_and_its_own() -> None:
    inner = {
        "prefix": {"x": "urn:lake:"},
        "wasDerivedFrom": {"_:1": {"prov:generatedEntity": "x:o", "prov:usedEntity": "lake:i"}},
    }
    assert read_document(document(bundle={"run:b": inner})) == [Edge("wasDerivedFrom", "urn:lake:o", "urn:lake:i")]


def relation(**ends: object) -> bytes:
    return document(used={"_:1": {f"prov:{name}": value for name, value in ends.items()}})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "a list, not an object"),
        (b"null", "not an object"),
        (document(gossip={}), "'gossip' is not an element of PROV-JSON"),
        (b'{"headers": {"seq": 1}, "value": {}}', "'headers' is not an element"),
        (document(used=[]), "used is a list"),
        (document(used={"_:1": 5}), "a number, not an object"),
        (document(bundle={"run:b": 5}), "not an object"),
        (json.dumps({"prefix": {"lake": 5}}).encode(), "prefix is not an object of strings"),
        (relation(activity="run:f"), "prov:entity is missing"),
        (relation(activity="run:f", entity=7), "prov:entity is a number"),
        (relation(activity="run:f", entity=["lake:a"]), "prov:entity is a list"),
        (relation(activity="run:f", entity={"$": "lake:a", "type": "prov:QUALIFIED_NAME"}), "is an object"),
        (relation(activity="run:f", entity="other:a"), "no declared prefix"),
        (relation(activity="f", entity="lake:a"), "no declared prefix"),
    ],
)
def test_what_breaks_the_contract_is_refused_with_the_reason(value: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read_document(value)


def test_a_name_without_prefix_is_refused_even_under_a_default_namespace() -> None:
    value = json.dumps(
        {
            "prefix": {"default": "urn:lake:"},
            "used": {"_:1": {"prov:activity": "f", "prov:entity": "a"}},
        }
    )
    with pytest.raises(DocumentError, match="no declared prefix"):
        read_document(value.encode())
