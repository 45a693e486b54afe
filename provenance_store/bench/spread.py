"""Measurements taken several times, told as median and spread, because machines are noisy."""

from collections.abc import Sequence
from statistics import median


def spread(values: Sequence[float], form: str = ",.1f") -> str:
    """`median (least to most)`."""
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
