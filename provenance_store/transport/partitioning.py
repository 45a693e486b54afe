"""Which partition a message goes to: horizontal, vertical or random, as paper 003 compares them (Section IV-B).

A message holds whole function executions, so any of them keeps each execution in one partition. Each depends on the
message alone: sent again, by a retried task say, it goes where it went before.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias
from zlib import crc32

Partitioning: TypeAlias = Callable[[Mapping[str, str], int], int]


def horizontal(headers: Mapping[str, str], partitions: int) -> int:
    """All executions of one function together."""
    return _spread(headers.get("function", ""), partitions)


def vertical(headers: Mapping[str, str], partitions: int) -> int:
    """Along the derivation paths: what one task, on one node, made from the same records stays together."""
    return _spread(f"{headers.get('node', '')}/{headers.get('task', '')}", partitions)


def random(headers: Mapping[str, str], partitions: int) -> int:
    """Evenly, by chance; the chance is drawn from the message's own name."""
    return _spread(f"{headers.get('attempt', '')}/{headers.get('seq', '')}", partitions)


PARTITIONINGS: Mapping[str, Partitioning] = {"horizontal": horizontal, "vertical": vertical, "random": random}


def _spread(text: str, partitions: int) -> int:
    return crc32(text.encode("utf-8", "surrogateescape")) % partitions
