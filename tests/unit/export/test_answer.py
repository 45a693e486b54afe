import re
import warnings
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest
from hypothesis import given
from prov.model import ProvDerivation, ProvDocument, ProvWarning

from provenance_store.errors import InputError
from provenance_store.export import AnswerDocument, write_answer
from provenance_store.export.names import NAMESPACES, provn_name, record_name
from provenance_store.export.prov import describe
from provenance_store.export.svg import write_svg
from provenance_store.graph.answer import Answer, AnsweredEdge, AnsweredRecord, CrossedRun
from tests.unit.export.answers import BY_HAND, COUNT, OTHER, TWEET, answers, ids, texts

PROV = {"prov-json": "json", "prov-n": "provn", "prov-xml": "xml"}


@pytest.mark.parametrize("form", PROV)
@given(answer=answers())
def test_prov_reads_back_what_was_written(form: str, answer: Answer) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProvWarning)  # prov warns where a name would change on its way
        written = write_answer(answer, form)
        read = ProvDocument.deserialize(content=written, format=PROV[form])
    assert read == describe(answer)
    derivations = {
        tuple(unexpand(name.uri) for name in one.args[:3])
        for one in read.get_records()
        if isinstance(one, ProvDerivation)
    }
    assert derivations == {(edge.output, edge.input, f"run {edge.run}") for edge in answer.edges}


def unexpand(uri: str) -> str:
    """The id behind a name, as a reader of the documentation would find it."""
    if uri.startswith(NAMESPACES["quoted"]):
        return unquote(uri.removeprefix(NAMESPACES["quoted"]))
    if uri.startswith(NAMESPACES["runs"]):
        return "run " + unquote(uri.removeprefix(NAMESPACES["runs"]))
    return "lake:" + uri.removeprefix(NAMESPACES["lake"])


@given(ids)
def test_names_in_prov_n_are_spelled_as_prov_does(record: str) -> None:
    document = ProvDocument()
    for prefix, namespace in NAMESPACES.items():
        document.add_namespace(prefix, namespace)
    name = document.valid_qualified_name(record_name(record))
    assert name.provn_bare_representation() == provn_name(record_name(record))


def test_prov_says_what_the_answer_says() -> None:
    written = write_answer(BY_HAND, "prov-n")
    assert "activity(runs:r1, -, -, [" in written
    assert f"wasDerivedFrom({COUNT}, {TWEET}, runs:r1, -, -)" in written
    assert 'headwater:verdict="partial"' in written
    assert f"entity({COUNT}, [" in written
    assert 'headwater:dataset="counts"' in written


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(InputError, match="prov-json, prov-n, prov-xml, dot, svg"):
        write_answer(BY_HAND, "png")


# As Graphviz has them: a quoted text ends at the first quote without a backslash before it.
LABEL = re.compile(r'label=("(?:[^"\\]|\\.)*")')


@given(answers())
def test_labels_of_dot_give_their_texts_back(answer: Answer) -> None:
    lines = write_answer(answer, "dot").splitlines()
    nodes = [line for line in lines if re.match(r"  r\d+ \[", line)]
    labels = [LABEL.search(line)[1] for line in nodes]
    shown = {re.sub(r"\\(.)", r"\1", label[1:-1]).replace("&amp;", "&") for label in labels}
    ends = {end for edge in answer.edges for end in (edge.output, edge.input)}
    assert {unquote(text) for text in shown} == {unquote(end) for end in {*answer.start, *ends}}
    assert len(nodes) == len({*answer.start, *ends})
    assert sum(" -> " in line for line in lines if re.match(r"  r\d+ -> r\d+ \[label=", line)) == len(answer.edges)
    assert len(lines) == 4 + len(nodes) + len(answer.edges)


@given(answers())
def test_an_svg_is_xml_with_a_box_for_each_record(answer: Answer) -> None:
    picture = ET.fromstring(write_answer(answer, "svg"))  # noqa: S314 - our own
    ends = {end for edge in answer.edges for end in (edge.output, edge.input)}
    assert len(picture.findall(f"{SVG}g")) == len({*answer.start, *ends})
    assert len(picture.findall(f"{SVG}path")) == len({(edge.output, edge.input) for edge in answer.edges})


SVG = "{http://www.w3.org/2000/svg}"


def test_an_svg_shows_the_nearest_and_counts_the_rest() -> None:
    far = [f"lake:tweets/n1/part-00000-of-a-file-with-a-long-name.jsonl#{n}" for n in range(500)]
    answer = Answer(
        start=[COUNT],
        direction="forward",
        verdict="complete",
        records=[AnsweredRecord(one, "tweets", 1) for one in far],
        edges=[AnsweredEdge(one, COUNT, run) for one in far for run in ("r1", "r2")],
        runs=[CrossedRun("r1", "x", "complete"), CrossedRun("r2", "x", "complete")],
    )
    picture = ET.fromstring(write_svg(answer))  # noqa: S314 - our own
    assert len(picture.findall(f"{SVG}g")) == 200
    assert len(picture.findall(f"{SVG}path")) == 199
    assert "and 301 more" in "".join(picture.itertext())
    assert all(len(text.text or "") <= 42 for text in picture.iterfind(f"{SVG}g/{SVG}text"))
    assert "and" not in "".join(text.text or "" for text in ET.fromstring(write_svg(answer, most=501)))  # noqa: S314


@pytest.mark.parametrize("form", AnswerDocument)
def test_an_empty_answer_has_its_start(form: str) -> None:
    nothing = Answer(start=[OTHER], direction="forward", verdict="complete", records=[], edges=[], runs=[])
    assert OTHER in write_answer(nothing, form)


@given(texts)
def test_what_is_not_of_the_lake_is_quoted(text: str) -> None:
    if not text.startswith("lake:"):
        assert unquote(record_name(text).removeprefix("quoted:")) == text
