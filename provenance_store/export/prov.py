"""An answer as a W3C PROV document, by the `prov` library.

Records are entities, runs are activities, and every dependency is a derivation that names its run. The answer itself is
an entity too, which carries the verdict. Nothing in it names a person.
"""

from prov.model import ProvDocument

from provenance_store.export.names import NAMESPACES, plain, record_name, run_name
from provenance_store.graph.answer import Answer
from provenance_store.graph.reduced import dataset_name


def describe(answer: Answer) -> ProvDocument:
    """The document; records that only lead to others, because a filter left them out, have no depth."""
    document = ProvDocument()
    for prefix, namespace in NAMESPACES.items():
        document.add_namespace(prefix, namespace)
    document.entity("headwater:answer", {"headwater:direction": answer.direction, "headwater:verdict": answer.verdict})
    for run in answer.runs:
        document.activity(
            run_name(run.run),
            other_attributes={"headwater:dic": plain(run.dic), "headwater:verdict": run.verdict},
        )
    depths = dict.fromkeys(answer.start, 0) | {record.id: record.depth for record in answer.records}
    ends = (end for edge in answer.edges for end in (edge.output, edge.input))
    for record in dict.fromkeys((*depths, *ends)):
        dataset = dataset_name(record)
        known = {"headwater:depth": depths.get(record), "headwater:dataset": dataset and plain(dataset)}
        document.entity(record_name(record), {name: value for name, value in known.items() if value is not None})
    for edge in answer.edges:
        document.wasDerivedFrom(record_name(edge.output), record_name(edge.input), run_name(edge.run))
    return document
