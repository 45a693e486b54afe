"""Provenance latency (paper 004, Figure 15): how much event time passes until an element is told, in multiples of U."""

from collections.abc import Iterable, Mapping
from statistics import fmean

import msgspec

from provenance_store.bench.live_flow import Flow
from provenance_store.streams.event import END
from provenance_store.streams.live import Edge, Element, Expired, Live, SinkVertex, SourceVertex

WHAT = ("sink", "source", "edge", "sink label", "source label")
COLUMNS = ("way", "sources a result", "overlap", *(f"{what} / U" for what in WHAT))


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """The mean latency of each kind of element."""

    way: str
    size: int
    overlap: int
    means: dict[str, float]

    def cells(self) -> list[str]:
        """As the table shows it."""
        return [self.way, str(self.size), f"{self.overlap} %", *(f"{self.means[what]:.2f}" for what in WHAT)]


def delays_of(way: str, flow: Flow, elements: Iterable[Element], times: Mapping[str, int]) -> Delays:
    """What the paper defines: vertices by their own times, edges by their vertices', labels by their vertex's."""
    told: dict[str, int] = {}
    found: dict[str, list[int]] = {what: [] for what in WHAT}
    later: list[Edge | Expired] = []
    for one in elements:
        if isinstance(one, SinkVertex | SourceVertex):
            told[one.id] = one.at
            found["sink" if isinstance(one, SinkVertex) else "source"].append(one.at - times[one.id])
        elif one.at < END:  # what the end of the run tells says nothing of how long it would have taken
            later.append(one)
    sinks = {one.output for one in later if isinstance(one, Edge)}
    for one in later:
        if isinstance(one, Edge):
            found["edge"].append(one.at - max(told[one.output], told[one.input]))
        else:
            found["sink label" if one.id in sinks else "source label"].append(one.at - told[one.id])
    means = {what: fmean(own) / flow.reach for what, own in found.items()}
    return Delays(way=way, size=flow.size, overlap=flow.overlap, means=means)


def times_of(flow: Flow, results: int) -> dict[str, int]:
    """The event times of all that a flow has."""
    times: dict[str, int] = {}
    for _, made in flow.steps(results, results):
        for one in made:
            times |= {one.id: one.time, **dict(one.sources)}
    return times


def measure_delays(flow: Flow, results: int) -> list[Delays]:
    """ANK-1 by U and by what is still held, a watermark behind every result."""
    times, rows = times_of(flow, results), []
    for way, exact in (("ANK-1, by U", False), ("ANK-1, exact", True)):
        live, elements = Live(flow.reach), []
        for number, (watermark, made) in enumerate(flow.steps(results, 1)):
            elements += live.take(watermark, made)
            elements += live.advance(watermark, flow.alive_after(number) if exact else None)
        rows.append(delays_of(way, flow, elements, times))
    return rows
