"""Ids and texts as every format can hold them: qualified names, and texts without control characters."""

import re
from urllib.parse import quote

from provenance_store.model.ids import LAKE_NAMESPACE

HEADWATER_NAMESPACE = "urn:headwater:"
NAMESPACES = {
    "lake": LAKE_NAMESPACE,
    "runs": "urn:run:",
    "quoted": "urn:quoted:",
    "headwater": HEADWATER_NAMESPACE,
}

# What PROV-N can write in a name without changing it; all ids that Headwater makes are of this.
_WRITABLE = re.compile(r"lake:(?:[A-Za-z0-9_/@~&+*?#$!=,:;.-]|%[0-9A-Fa-f]{2})+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_MUST_ESCAPE = re.compile(r"[=,:;]|^[-.]|\.$")


def record_name(record: str) -> str:
    """A record as a qualified name; `quoted:` and all of it percent-encoded where PROV-N could not write it."""
    return record if _WRITABLE.fullmatch(record) else f"quoted:{_quote(record)}"


def run_name(run: str) -> str:
    """A run as a qualified name."""
    return f"runs:{_quote(run)}"


def provn_name(name: str) -> str:
    """A qualified name as it is spelled in PROV-N."""
    prefix, _, local = name.partition(":")
    return f"{prefix}:{_MUST_ESCAPE.sub(_escape, local)}"


def plain(text: str) -> str:
    """A text with the characters encoded that XML cannot hold, or would not give back."""
    return _CONTROL.sub(lambda found: _quote(found[0]), text)


def _quote(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
