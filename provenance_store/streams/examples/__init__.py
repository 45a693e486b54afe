"""The queries of papers 001 and 004, runnable, with generated source events; importing it registers their functions.

Nothing else in the library needs it: `functions` imports it by name when a description names what is not known yet.
"""

from provenance_store.streams.examples.catalogue import EXAMPLES, Example, find_example

__all__ = ["EXAMPLES", "Example", "find_example"]
