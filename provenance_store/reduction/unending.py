"""A stream that never ends, step by step: what is final is given out, what may still change is carried, the rest goes.

    step = advance(carried, edges, names, watermark)
    step.graph      the dependencies that became final, for ever: edges of a graph are only ever added
    step.carried    what the next step needs

An item (an entity outside the lake, or an execution) is *open* as long as it was told of since the watermark, and then
*closed*: nothing more is told of it. A step keeps records and open items and contracts everything else away, so a
dependency between two records is final as soon as all items between them are closed, and their state is free. What is
carried depends on how much is told while the watermark waits, not on the length of the stream.

The result is the exact one where nobody tells of an item after it was closed. Where somebody does, what is told is
contracted as far as what is carried allows. An item that was used, and of which nothing told what it was made from, is
counted when it is closed: it is *unmade*, which is what such a stream shows of messages that are missing.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from provenance_store.model.account import Account
from provenance_store.reduction.completeness import choose_dic
from provenance_store.reduction.contract import Pairs, contract
from provenance_store.reduction.hashed import number_columns, spell
from provenance_store.reduction.intern import in_lake
from provenance_store.reduction.native import Codes, Flags, Numbers
from provenance_store.reduction.schemas import DERIVED, GENERATED, NAME_SCHEMA, USED

# The watermark while no time is known.
BEFORE_ALL = -(1 << 62)
_REFUSAL = (
    "It names no record of the lake so far. What its sources and sinks are is not known before it ends: "
    "let its driver send a manifest, and reduce it without --watermark."
)

# What is known of an id: when it was last told of, in milliseconds, and in which places it stood.
RECENT_SCHEMA = pl.Schema(
    {
        "hi": pl.Int64,
        "lo": pl.Int64,
        "told_at": pl.Int64,
        "is_used": pl.Boolean,
        "is_made": pl.Boolean,
        "is_activity": pl.Boolean,
    }
)

# Dependencies between hashes of records.
PAIR_SCHEMA = pl.Schema({"output_hi": pl.Int64, "output_lo": pl.Int64, "input_hi": pl.Int64, "input_lo": pl.Int64})

# Edges between hashes of ids, as HASHED_EDGE_SCHEMA has them, with the time when each was told.
TOLD_EDGE_SCHEMA = pl.Schema(
    {
        "relation": pl.Int8,
        "dependent_hi": pl.Int64,
        "dependent_lo": pl.Int64,
        "dependency_hi": pl.Int64,
        "dependency_lo": pl.Int64,
        "told_at": pl.Int64,
    }
)


class Carried(NamedTuple):
    """What one step leaves to the next.

    All ids that were told of since the watermark; edges that end in an open item, and names of the records at such
    edges; and dependencies given out already that may be found a second time, by another way.
    """

    recent: pl.DataFrame
    edges: pl.DataFrame
    names: pl.DataFrame
    given: pl.DataFrame

    @classmethod
    def nothing(cls) -> "Carried":
        """Before the first step."""
        schemas = (RECENT_SCHEMA, TOLD_EDGE_SCHEMA, NAME_SCHEMA, PAIR_SCHEMA)
        return cls(*(pl.DataFrame(schema=schema) for schema in schemas))

    @property
    def is_nothing(self) -> bool:
        """Whether no step needs it."""
        return not any(table.height for table in self)


class Step(NamedTuple):
    """What a step gives: final dependencies, sorted; what is carried on; and how many unmade items were closed."""

    graph: pl.DataFrame
    carried: Carried
    unmade: int


def advance(carried: Carried, edges: pl.DataFrame, names: pl.DataFrame, watermark: int) -> Step:
    """Take in the edges of one run after TOLD_EDGE_SCHEMA with names after NAME_SCHEMA, up to a watermark."""
    told = pl.concat([carried.edges, edges])
    known = pl.concat([carried.names, names.filter("lake")])
    hi, lo, (dependent, dependency, own, named, *given) = number_columns(
        (told, "dependent_"),
        (told, "dependency_"),
        (carried.recent, ""),
        (known, ""),
        (carried.given, "output_"),
        (carried.given, "input_"),
    )
    ids = _Ids.of(told, dependent, dependency, carried.recent, own, len(lo))
    is_record = in_lake(lo) & ~ids.is_activity
    is_recent = ids.told_at >= watermark
    is_open = ~is_record & is_recent
    pairs = contract(told["relation"].to_numpy(), dependent, dependency, is_record, names_records=True, kept=is_open)
    is_final = is_record[pairs.output] & is_record[pairs.input]
    waiting = Pairs(pairs.output[~is_final], pairs.input[~is_final])
    final = _leave_out(Pairs(pairs.output[is_final], pairs.input[is_final]), Pairs(*given))
    is_live = is_record & is_recent
    is_live[waiting.output] = True
    remembered = _choose(Pairs(*map(np.concatenate, zip(given, final, strict=True))), is_live)
    name_of = np.full(len(lo), -1, np.int64)
    name_of[named] = np.arange(known.height)
    ends = np.unique(np.concatenate(waiting))
    rest = Carried(
        ids.tabulate(hi, lo, np.flatnonzero(is_recent)),
        _link(hi, lo, waiting),
        known[_places(name_of, ends[is_record[ends]])],
        _pair(hi, lo, remembered),
    )
    is_unmade = ids.is_used & ~ids.is_made & ~ids.is_activity & ~is_record & ~is_open
    return Step(spell(final, name_of, known["id"]), rest, int(is_unmade.sum()))


class UnendingAccount(Account, frozen=True, kw_only=True):
    """The account of a run that has not ended, as of a step.

    Its verdict is `unknown`, nothing is known to be missing, and copies of a message are not told apart.
    """

    watermark: str  # up to when all dependencies are final; empty before that is known
    carried: int  # edges that end in an open item
    late: int  # messages that were older than the watermark when they came
    refused: str  # why the run cannot be reduced before it ends

    @classmethod
    def begin(cls, run: str) -> "UnendingAccount":
        """Before the first step."""
        return cls(
            run=run,
            dic="",
            verdict="unknown",
            messages=0,
            bytes=0,
            edges_in=0,
            edges_local=0,
            edges_out=0,
            duplicates=0,
            discarded=0,
            rejected=0,
            missing={},
            seconds=0.0,
            watermark="",
            carried=0,
            late=0,
            unmade=0,
            refused=_REFUSAL,
        )

    def add(
        self, messages: pl.DataFrame, step: Step, *, edges_local: int, late: int, watermark: int, seconds: float
    ) -> "UnendingAccount":
        """The account after a step that took in these messages, after MESSAGE_SCHEMA."""
        told = messages.filter(pl.col("manifest").is_null())
        return msgspec.structs.replace(
            self,
            dic=self.dic or choose_dic(messages),
            messages=self.messages + told.height,
            bytes=self.bytes + int(told["bytes"].sum()),
            edges_in=self.edges_in + int(told["edges"].sum()),
            edges_local=self.edges_local + edges_local,
            edges_out=self.edges_out + step.graph.height,
            rejected=self.rejected + int(told["reason"].is_not_null().sum()),
            seconds=round(seconds, 3),
            watermark=spell_time(watermark),
            carried=step.carried.edges.height,
            late=self.late + late,
            unmade=self.unmade + step.unmade,
            refused="" if told["lake"].any() else self.refused,
        )


def move_watermark(watermark: int, times: Mapping[int, int], holding: Collection[int], *, period: int) -> int:
    """The watermark of a topic: a period before the largest time of the slowest partition that holds it back.

    `times` are the largest of each partition so far, all in milliseconds. A partition holds the watermark back while
    there is something in it to be read; one that was read to its end does not, as what comes to it will be new. The
    watermark never falls, and stays where it is while a partition that holds it has shown no time yet.
    """
    held = [times[partition] for partition in holding if partition in times]
    if not held or len(held) < len(holding):
        return watermark
    return max(watermark, min(held) - period)


def spell_time(milliseconds: int) -> str:
    """A time as ISO 8601 has it; nothing for one before all."""
    if milliseconds <= BEFORE_ALL:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


class _Ids(NamedTuple):
    """What is known of each numbered id."""

    told_at: Numbers
    is_used: Flags
    is_made: Flags
    is_activity: Flags

    @classmethod
    def of(
        cls, told: pl.DataFrame, dependent: Codes, dependency: Codes, recent: pl.DataFrame, own: Codes, count: int
    ) -> "_Ids":
        """Gathered from the edges, and from what was known before of some."""
        told_at = np.full(count, BEFORE_ALL)
        is_used, is_made, is_activity = (np.zeros(count, np.bool_) for _ in range(3))
        for ends in (dependent, dependency):
            np.maximum.at(told_at, ends, told["told_at"].to_numpy())
        told_at[own] = np.maximum(told_at[own], recent["told_at"].to_numpy())
        relation = told["relation"].to_numpy()
        is_used[dependency], is_made[dependent] = True, True
        is_activity[dependent[relation == USED]] = True
        is_activity[dependency[relation == GENERATED]] = True
        for flags, name in ((is_used, "is_used"), (is_made, "is_made"), (is_activity, "is_activity")):
            flags[own] |= recent[name].to_numpy()
        return cls(told_at, is_used, is_made, is_activity)

    def tabulate(self, hi: Numbers, lo: Numbers, chosen: Numbers) -> pl.DataFrame:
        """The chosen ones after RECENT_SCHEMA."""
        columns = {"hi": hi, "lo": lo, **self._asdict()}
        return pl.DataFrame({name: values[chosen] for name, values in columns.items()}, schema=RECENT_SCHEMA)


def _leave_out(pairs: Pairs, others: Pairs) -> Pairs:
    def keys(of: Pairs) -> Numbers:
        return (of.output.astype(np.int64) << 32) | of.input

    is_new = ~np.isin(keys(pairs), keys(others))
    return Pairs(pairs.output[is_new], pairs.input[is_new])


def _choose(pairs: Pairs, is_live: Flags) -> Pairs:
    return Pairs(pairs.output[is_live[pairs.output]], pairs.input[is_live[pairs.output]])


def _link(hi: Numbers, lo: Numbers, pairs: Pairs) -> pl.DataFrame:
    """Edges to carry. They tell no time: what is known of the items at their ends is carried beside them."""
    columns = {
        "relation": np.full(len(pairs.output), DERIVED, np.int8),
        "dependent_hi": hi[pairs.output],
        "dependent_lo": lo[pairs.output],
        "dependency_hi": hi[pairs.input],
        "dependency_lo": lo[pairs.input],
        "told_at": np.full(len(pairs.output), BEFORE_ALL),
    }
    return pl.DataFrame(columns, schema=TOLD_EDGE_SCHEMA)


def _pair(hi: Numbers, lo: Numbers, pairs: Pairs) -> pl.DataFrame:
    columns = {
        "output_hi": hi[pairs.output],
        "output_lo": lo[pairs.output],
        "input_hi": hi[pairs.input],
        "input_lo": lo[pairs.input],
    }
    return pl.DataFrame(columns, schema=PAIR_SCHEMA)


def _places(name_of: Numbers, ids: Codes) -> Numbers:
    places = name_of[ids]
    if (places < 0).any():
        raise ValueError("a record has no name in the state")
    return places
