"""The edges of a reduced graph in batches that a transaction can hold."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from provenance_store.graph.reduced import EDGES, ReducedGraph, dataset_name

BATCH_EDGES = 20_000
BATCH_BYTES = 8_000_000

Numbers: TypeAlias = npt.NDArray[np.int64]
Feeds: TypeAlias = Counter[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring edges of a reduced graph: each end is a number into the records, which are distinct and sorted."""

    first: int
    records: list[str]
    # The datasets of the records, each once, and which of them each record belongs to.
    datasets: list[str | None]
    dataset_of: Numbers
    outputs: Numbers
    inputs: Numbers

    @classmethod
    def of(cls, first: int, edges: pa.Table) -> "Batch":
        """The edges of a table, of which the first is the graph's edge number `first`."""
        ends = pa.chunked_array([*edges.column("output").chunks, *edges.column("input").chunks], pa.large_string())
        encoded = ends.combine_chunks().dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[order.to_numpy()] = np.arange(len(order))
        numbers = ranks[encoded.indices.to_numpy()]
        records = encoded.dictionary.take(order).to_pylist()
        datasets: dict[str | None, int] = {}
        dataset_of = np.array([datasets.setdefault(dataset_name(record), len(datasets)) for record in records])
        return cls(first, records, list(datasets), dataset_of, numbers[: edges.num_rows], numbers[edges.num_rows :])

    @property
    def end(self) -> int:
        """The number of the edge after its last."""
        return self.first + len(self.outputs)

    def beyond(self, edge: int) -> "Batch":
        """What of it is left when the edges before number `edge` are merged already."""
        merged = edge - self.first
        return replace(self, first=edge, outputs=self.outputs[merged:], inputs=self.inputs[merged:])

    def feeds(self) -> Feeds:
        """How many derivations lead from which dataset into which; ids outside the lake belong to none."""
        inputs, outputs = self.dataset_of[self._distinct()]
        pairs, counts = np.unique(inputs * len(self.datasets) + outputs, return_counts=True)
        feeds: Feeds = Counter()
        for pair, edges in zip(pairs.tolist(), counts.tolist(), strict=True):
            source, target = (self.datasets[number] for number in divmod(pair, len(self.datasets)))
            if source is not None and target is not None:
                feeds[source, target] = edges
        return feeds

    def parameters(self) -> dict[str, Any]:
        """What the statement that writes it takes: plain lists, which travel faster than maps.

        Edges are in the order of their inputs, which other runs share: merges that lock in one order seldom deadlock.
        """
        inputs, outputs = self._distinct()
        return {
            "records": self.records,
            "datasets": self.datasets,
            "dataset_of": self.dataset_of.tolist(),
            "outputs": outputs.tolist(),
            "inputs": inputs.tolist(),
        }

    def _distinct(self) -> Numbers:
        """Inputs over outputs of the edges, each edge once."""
        edges = np.unique(self.inputs * len(self.records) + self.outputs)
        return np.stack(np.divmod(edges, len(self.records)))


def batches_of(graph: ReducedGraph) -> Iterator[Batch]:
    """The edges in the files' order, bounded by number and by size; a single edge always fits."""
    first = 0
    for table in _tables(graph):
        for part in _bounded(table):
            yield Batch.of(first, part)
            first += part.num_rows


def _tables(graph: ReducedGraph) -> Iterator[pa.Table]:
    waiting = EDGES.empty_table()
    for rows in graph.rows(BATCH_EDGES):
        waiting = pa.concat_tables([waiting, pa.table(rows).select(EDGES.names).cast(EDGES)])
        while waiting.num_rows >= BATCH_EDGES:
            yield waiting.slice(0, BATCH_EDGES)
            waiting = waiting.slice(BATCH_EDGES)
    if waiting.num_rows:
        yield waiting


def _bounded(edges: pa.Table) -> Iterator[pa.Table]:
    sizes = sum(pc.binary_length(edges.column(name)).to_numpy() for name in EDGES.names)
    ends = np.cumsum(sizes)
    begin = 0
    while begin < edges.num_rows:
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        yield edges.slice(begin, end - begin)
        begin = end
