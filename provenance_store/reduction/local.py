"""Local reduction: a batch of messages decoded, and contracted as far as each message alone allows.

For whoever reduces a stream in parts, such as a Spark worker with the messages of its Kafka partition:

    local = reduce_locally(messages, numbers)
    local.messages    one row a message, after MESSAGE_SCHEMA: what `completeness.judge` takes
    local.edges()     HASHED_EDGE_SCHEMA: edges between hashes of 128 bits, the same in every process
    local.names()     NAME_SCHEMA: the text of each id that may be needed, once in the batch

An edge's ends are all that contraction needs: equal ids have equal hashes, and the lowest bit of a hash's lower half
tells whether the id is in the lake's namespace (`intern.in_lake`). Names are needed only to write the graph. Those of
ids in the lake are always there. Those of others are needed where a run names no record at all, so they are left out
for a run of which the batch shows a record. What shows it may turn out not to count, and then the run's names are
missing: `Judgement.lacks_names` tells, and the run's messages are to be reduced again with `every_name=True`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX
from provenance_store.model.message import Message
from provenance_store.reduction.decode import Decoded, decode
from provenance_store.reduction.documents import Edges
from provenance_store.reduction.executions import contract_locally
from provenance_store.reduction.intern import Ids
from provenance_store.reduction.native import Codes, Flags, Numbers, compiled
from provenance_store.reduction.schemas import HASHED_EDGE_SCHEMA, NAME_SCHEMA
from provenance_store.reduction.texts import to_strings

# An id in the lake is written with the prefix for the namespace, which is the namespace's end.
CUT = len(LAKE_NAMESPACE.removesuffix(LAKE_PREFIX))


class LocalReduction(NamedTuple):
    """A batch's messages, their local edges, and the ids at the edges' ends; `settled`: see `reduce_locally`."""

    messages: pl.DataFrame
    columns: Edges
    ids: Ids
    settled: Flags

    def edges(self) -> pl.DataFrame:
        """The local edges after HASHED_EDGE_SCHEMA."""
        hi, lo, columns = self.ids.hi, self.ids.lo, self.columns
        return pl.DataFrame(
            {
                "message": self.messages["message"].gather(columns.document),
                "relation": columns.relation,
                "dependent_hi": hi[columns.dependent],
                "dependent_lo": lo[columns.dependent],
                "dependency_hi": hi[columns.dependency],
                "dependency_lo": lo[columns.dependency],
            },
            schema=HASHED_EDGE_SCHEMA,
        )

    def names(self) -> pl.DataFrame:
        """The ids whose text may be needed, after NAME_SCHEMA."""
        chosen = self.named()
        hi, lo, lake = self.ids.hi[chosen], self.ids.lo[chosen], self.ids.lake[chosen]
        texts = to_strings(self.ids.starts[chosen] + CUT * lake, self.ids.stops[chosen])
        return pl.DataFrame({"hi": hi, "lo": lo, "id": texts, "lake": lake}, schema=NAME_SCHEMA)

    def named(self) -> Numbers:
        """The numbers of the ids whose text may be needed."""
        columns = self.columns
        needed = np.zeros(len(self.ids.hi), np.bool_)
        _mark_needed(columns.document, columns.dependent, columns.dependency, self.settled, self.ids.lo, needed)
        return np.flatnonzero(needed)

    def spelled(self) -> pl.DataFrame:
        """The local edges after EDGE_SCHEMA, with the ids' expanded texts."""
        return Decoded(self.messages, self.columns, self.ids).spelled()


def reduce_locally(messages: Sequence[Message], numbers: Sequence[int], *, every_name: bool = False) -> LocalReduction:
    """Decode a batch and contract its edges as far as each message alone allows; `numbers` name the messages.

    Someone else's emitter, which sends no headers, has not promised whole executions: its edges stay as they are. A
    message is settled where ids outside the lake that stand in it will not be asked for.
    """
    table, edges, ids = decode(messages, numbers)
    whole = table["attempt"].is_not_null().to_numpy()
    columns = contract_locally(edges, ids, whole)
    settled = np.zeros(len(messages), np.bool_) if every_name else _of_runs_with_records(table)
    return LocalReduction(table, columns, ids, settled)


def _of_runs_with_records(messages: pl.DataFrame) -> Flags:
    """Of each message, whether the batch shows a record of its run; messages that tell no run are one by themselves."""
    return messages.select(pl.col("lake").any().over("run")).to_series().to_numpy()


@compiled
def _mark_needed(
    documents: Codes, dependents: Codes, dependencies: Codes, settled: Flags, lo: Numbers, needed: Flags
) -> None:
    for edge in range(len(documents)):
        for one in (dependents[edge], dependencies[edge]):
            if lo[one] & 1 or not settled[documents[edge]]:
                needed[one] = True
