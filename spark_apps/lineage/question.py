"""What a bulk trace is asked."""

from dataclasses import dataclass

from provenance_store.errors import InputError
from provenance_store.graph.answer import Direction


@dataclass(frozen=True, slots=True)
class BulkQuestion:
    """What is asked of every start: which way, how far, and what of it is kept."""

    direction: Direction
    depth: int | None = None
    to: str | None = None
    # Backward: records that were made from nothing. Forward: records from which nothing was made.
    ends_only: bool = False
    # Whether the dependencies that were crossed are wanted too.
    edges: bool = False

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 1:
            raise InputError(f"depth {self.depth} reaches nothing: it counts steps, from 1 up.")
