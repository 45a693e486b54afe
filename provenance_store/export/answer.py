"""An answer as a document that others read: one function a format, and the table that lists them."""

from collections.abc import Callable
from enum import StrEnum

from provenance_store.errors import InputError
from provenance_store.export.dot import write_dot
from provenance_store.export.svg import write_svg
from provenance_store.graph.answer import Answer


class AnswerDocument(StrEnum):
    """The formats that an answer can be written in."""

    PROV_JSON = "prov-json"
    PROV_N = "prov-n"
    PROV_XML = "prov-xml"
    DOT = "dot"
    SVG = "svg"


def write_answer(answer: Answer, form: str) -> str:
    """The answer in one of the formats of `AnswerDocument`; encode it as UTF-8."""
    try:
        write = _WRITERS[AnswerDocument(form)]
    except ValueError:
        raise InputError(f"There is no format {form!r} of an answer. There are: {', '.join(AnswerDocument)}.") from None
    return write(answer)


def _prov_writer(form: str) -> Callable[[Answer], str]:
    def write(answer: Answer) -> str:
        from provenance_store.export.prov import describe  # noqa: PLC0415 - prov takes a moment to import

        return str(describe(answer).serialize(format=form))

    return write


_WRITERS: dict[AnswerDocument, Callable[[Answer], str]] = {
    AnswerDocument.PROV_JSON: _prov_writer("json"),
    AnswerDocument.PROV_N: _prov_writer("provn"),
    AnswerDocument.PROV_XML: _prov_writer("xml"),
    AnswerDocument.DOT: write_dot,
    AnswerDocument.SVG: write_svg,
}
