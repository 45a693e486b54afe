"""Our PROV-JSON and the `prov` library's mean the same, both ways."""

import json
import warnings
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prov.model import (
    ProvDerivation,
    ProvDocument,
    ProvGeneration,
    ProvMembership,
    ProvUsage,
    ProvWarning,
)

from provenance_store.errors import DocumentError
from provenance_store.model.document import RELATION_ENDS, Edge, compact, read_document, write_document
from provenance_store.model.ids import LAKE_NAMESPACE, RecordId, run_namespace

RUN = "r1"
NAMESPACES = {"lake": LAKE_NAMESPACE, "run": run_namespace(RUN)}
KINDS = {
    ProvUsage: "used",
    ProvGeneration: "wasGeneratedBy",
    ProvDerivation: "wasDerivedFrom",
    ProvMembership: "hadMember",
}

lake_ids = st.builds(
    lambda file, position: str(RecordId("tweets", "v1", file=file, position=position)),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=8).filter(
        lambda name: name not in {".", ".."}
    ),
    st.integers(0, 10**9),
)
run_ids = st.from_regex(r"run:[a-z]{1,3}[0-9]{1,4}(/[a-z0-9.]{1,4})?", fullmatch=True)
ids = lake_ids | run_ids
edges = st.lists(st.tuples(st.sampled_from(sorted(RELATION_ENDS)), ids, ids), max_size=20)


def expand(name: str) -> str:
    prefix, _, local = name.partition(":")
    return NAMESPACES[prefix] + local


def prov_edges(document: ProvDocument) -> Counter[tuple[str, str, str]]:
    return Counter(
        (KINDS[type(record)], *(value.uri for _, value in record.formal_attributes[:2]))
        for record in document.get_records(tuple(KINDS))
    )


@given(edges)
def test_prov_reads_what_we_write(told: list[tuple[str, str, str]]) -> None:
    value = write_document(RUN, told)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProvWarning)
        document = ProvDocument.deserialize(content=value.decode(), format="json")
    assert prov_edges(document) == Counter((kind, expand(a), expand(b)) for kind, a, b in told)


@given(edges, st.sampled_from(["lake", "l", "other"]), st.sampled_from(["run", "x"]))
def test_we_read_what_prov_writes_whatever_its_prefixes(told: list[tuple[str, str, str]], lake: str, run: str) -> None:
    document = ProvDocument()
    document.add_namespace(lake, NAMESPACES["lake"])
    document.add_namespace(run, NAMESPACES["run"])
    names = {"lake": lake, "run": run}

    def qualified(name: str) -> str:
        prefix, _, local = name.partition(":")
        return f"{names[prefix]}:{local}"

    add = {
        "used": document.usage,
        "wasGeneratedBy": document.generation,
        "wasDerivedFrom": document.derivation,
        "hadMember": document.membership,
    }
    for kind, a, b in told:
        add[kind](qualified(a), qualified(b))
        document.entity(qualified(b), {"prov:label": "attributes are filtered out"})
    read = read_document(document.serialize(format="json").encode())
    assert Counter(read) == Counter(Edge(kind, expand(a), expand(b)) for kind, a, b in told)


@given(edges)
def test_round_trip_through_ourselves(told: list[tuple[str, str, str]]) -> None:
    read = read_document(write_document(RUN, told))
    assert Counter(read) == Counter(Edge(kind, expand(a), expand(b)) for kind, a, b in told)
    for edge in read:
        if edge.dependent.startswith(LAKE_NAMESPACE):
            assert RecordId.parse(compact(edge.dependent))


@given(edges.filter(bool), st.data())
def test_a_repeated_key_never_hides_an_edge(told: list[tuple[str, str, str]], data: st.DataObject) -> None:
    """Two relations under one key: a plain JSON reader would keep one of them in silence."""
    document = json.loads(write_document(RUN, told))
    kind = data.draw(st.sampled_from([name for name in RELATION_ENDS if name in document]))
    name, record = data.draw(st.sampled_from(sorted(document[kind].items(), key=str)))
    whole = json.dumps(document[kind])
    doubled = whole[:-1] + f", {json.dumps(name)}: {json.dumps(record)}" + "}"
    text = json.dumps(document).replace(whole, doubled, 1)
    with pytest.raises(DocumentError, match="stands twice"):
        read_document(text.encode())
