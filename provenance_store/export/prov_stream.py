"""Reduced graphs as one W3C PROV document, written while they are read: it may be larger than memory.

Runs are activities, and every edge is a derivation that names its run. Records are not declared, which PROV allows: to
declare each once, all of them would have to be remembered.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import IO, NamedTuple

import msgspec

from provenance_store.export.names import NAMESPACES, plain, provn_name, record_name, run_name
from provenance_store.graph.reduced import ReducedGraph


def write_provn(graphs: Sequence[ReducedGraph], file: IO[bytes]) -> None:
    """As PROV-N, a line a statement."""
    prefixes = (f"  prefix {prefix} <{namespace}>" for prefix, namespace in NAMESPACES.items())
    file.write("\n".join(("document", *prefixes, "")).encode())
    for graph in graphs:
        attributes = ", ".join(f'{name}="{_provn_text(value)}"' for name, value in _attributes(graph).items())
        file.write(f"  activity({provn_name(run_name(graph.account.run))}, -, -, [{attributes}])\n".encode())
    for batch in _derivations(graphs):
        lines = (f"  wasDerivedFrom({', '.join(map(provn_name, derivation))}, -, -)\n" for derivation in batch)
        file.write("".join(lines).encode())
    file.write(b"endDocument\n")


def write_prov_json(graphs: Sequence[ReducedGraph], file: IO[bytes]) -> None:
    """As PROV-JSON."""
    head = {"prefix": NAMESPACES, "activity": {run_name(graph.account.run): _attributes(graph) for graph in graphs}}
    file.write(msgspec.json.encode(head)[:-1] + b',"wasDerivedFrom":{')
    numbers = count()
    for batch in _derivations(graphs):
        entries = (_json_entry(next(numbers), derivation) for derivation in batch)
        file.write(b"".join(entries))
    file.write(b"}}\n")


class _Derivation(NamedTuple):
    output: str
    source: str
    run: str


def _derivations(graphs: Iterable[ReducedGraph]) -> Iterator[list[_Derivation]]:
    """Of all edges the derivations, as qualified names."""
    for graph in graphs:
        run = run_name(graph.account.run)
        for outputs, inputs in graph.pairs():
            names = (map(record_name, ids) for ids in (outputs, inputs))
            yield [_Derivation(output, source, run) for output, source in zip(*names, strict=True)]


def _attributes(graph: ReducedGraph) -> dict[str, str]:
    return {"headwater:dic": plain(graph.account.dic), "headwater:verdict": graph.account.verdict}


def _json_entry(number: int, derivation: _Derivation) -> bytes:
    ends = {
        "prov:generatedEntity": derivation.output,
        "prov:usedEntity": derivation.source,
        "prov:activity": derivation.run,
    }
    return (b"," if number else b"") + f'"_:{number}":'.encode() + msgspec.json.encode(ends)


def _provn_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
