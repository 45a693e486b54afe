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
from provenance_store.reduction.documents import Edges
from provenance_store.reduction.envelopes import read_envelopes
from provenance_store.reduction.intern import Ids, number_hashes
from provenance_store.reduction.native import Flags, Numbers
from provenance_store.reduction.pieces import read_pieces
from provenance_store.reduction.schemas import EDGE_SCHEMA, HASHED_EDGE_SCHEMA, NAME_SCHEMA
from provenance_store.reduction.texts import to_strings

# An id in the lake is written with the prefix for the namespace, which is the namespace's end.
_CUT = len(LAKE_NAMESPACE.removesuffix(LAKE_PREFIX))


class LocalReduction(NamedTuple):
    """A batch's messages, and their local edges between numbered ids; an edge's document is a row of the messages."""

    messages: pl.DataFrame
    columns: Edges
    ids: Ids
    every_name: bool

    def edges(self) -> pl.DataFrame:
        """The local edges after HASHED_EDGE_SCHEMA."""
        hi, lo, columns = self.ids.hi, self.ids.lo, self.columns
        return pl.DataFrame(
            {
                "message": self.messages["message"].to_numpy()[columns.document],
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
        chosen = self._named()
        chosen = chosen[number_hashes(self.ids.hi[chosen], self.ids.lo[chosen])[1]]
        hi, lo, lake = self.ids.hi[chosen], self.ids.lo[chosen], self.ids.lake[chosen]
        texts = to_strings(written_from(self.ids)[chosen], self.ids.stops[chosen])
        return pl.DataFrame({"hi": hi, "lo": lo, "id": texts, "lake": lake}, schema=NAME_SCHEMA)

    def spelled(self) -> pl.DataFrame:
        """The local edges after EDGE_SCHEMA, with the ids' expanded texts; only where every name is kept."""
        names = to_strings(self.ids.starts, self.ids.stops)
        return pl.DataFrame(
            {
                "message": self.messages["message"].to_numpy()[self.columns.document],
                "relation": self.columns.relation,
                "dependent": names.gather(self.columns.dependent),
                "dependency": names.gather(self.columns.dependency),
            },
            schema=EDGE_SCHEMA,
        )

    def _named(self) -> Numbers:
        has_text = self.ids.stops != 0
        if self.every_name:
            return np.flatnonzero(has_text)
        # Messages that tell no run are a run by themselves.
        settled = self.messages.select(pl.col("lake").any().over("run")).to_series().to_numpy()
        if settled.all():
            return np.flatnonzero(has_text & self.ids.lake)
        asked: Flags = self.ids.lake
        open_ends = ~settled[self.columns.document]
        asked[self.columns.dependent[open_ends]] = True
        asked[self.columns.dependency[open_ends]] = True
        return np.flatnonzero(has_text & asked)


def reduce_locally(messages: Sequence[Message], numbers: Sequence[int], *, every_name: bool = False) -> LocalReduction:
    """Decode a batch and contract its edges as far as each message alone allows; `numbers` name the messages."""
    envelopes = read_envelopes(messages)
    documents = envelopes.documents
    values = [messages[place].value for place in documents.tolist()]
    piece = read_pieces(values, envelopes.promise_whole_executions(), every_name=every_name)
    table = envelopes.tabulate(numbers, edges=piece.counts, lake=piece.shows, reasons=piece.reasons)
    columns = piece.edges._replace(document=documents.astype(np.int32)[piece.edges.document])
    return LocalReduction(table, columns, piece.ids, every_name)


def written_from(ids: Ids) -> Numbers:
    """Where the texts begin as they are written in files: compact where the id is in the lake."""
    return ids.starts + _CUT * ids.lake
