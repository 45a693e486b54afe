"""What Headwater knows, for others: answers and reduced graphs as W3C PROV, OpenLineage, DOT and SVG.

Imports graph and model; only the command line, the Spark apps and the plugins import it.
"""

from provenance_store.export.answer import AnswerDocument, write_answer

__all__ = ["AnswerDocument", "write_answer"]
