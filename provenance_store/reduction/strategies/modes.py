"""The strategies by name."""

from collections.abc import Callable, Mapping

from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.port import Strategy
from provenance_store.reduction.strategies.serial import Serial
from provenance_store.reduction.strategies.window import SlidingWindow

MODES: Mapping[str, Callable[[], Strategy]] = {"grouping": Grouping, "window": SlidingWindow, "serial": Serial}
