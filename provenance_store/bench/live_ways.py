"""Ways to execute a query that `headwater bench live` compares: by what they tell of where results came from."""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from provenance_store.model.files import write_whole
from provenance_store.streams.assertions import Keep, write_table
from provenance_store.streams.execution import Execution
from provenance_store.streams.folders import Workshop
from provenance_store.streams.lanes import Lanes
from provenance_store.streams.live_messages import LiveMessage
from provenance_store.streams.telling import Expiry
from provenance_store.streams.trails import Leaf

# A result, and the sources' events that it was made from.
References: TypeAlias = tuple[str, Sequence[tuple[str, Leaf]]]


class Backward(Execution):
    """Source ids carried through every operator by link records, unfolded at the sink, and written beside results."""

    def __init__(self, workshop: Workshop, **chosen: Any) -> None:
        super().__init__(workshop, trails=True, **chosen)
        self.folder = workshop.folder / "references"
        self.results = self.sources = 0

    def step(self, lanes: Lanes, until: int, rejected: Sequence[bytes] = ()) -> list[LiveMessage]:
        """Go on to a time; of each result the ids of its sources are written."""
        rows = [(one.id, one.move.engine.sources_of(one.event.key)) for one in self.land(lanes, until, rejected)]
        if rows:
            self.write(f"{lanes.bucket:03}-{lanes.step:06}", rows)
        for lane in lanes.at_work():
            deque(lane.engine.forget(), maxlen=0)  # what is alive is of no interest here
        self.results += len(rows)
        self.sources += sum(len(sources) for _, sources in rows)
        return []

    def write(self, part: str, rows: Sequence[References]) -> None:
        """Whole ids, as live provenance tells them."""
        named = [(result, [self.landing.source_id(*one) for one in sources]) for result, sources in rows]
        self.folder.mkdir(exist_ok=True)
        write_whole(self.folder / f"{part}.json", msgspec.json.encode(named))


class PackedBackward(Backward):
    """The same, with references as small as keys are: the places of records, as columns of numbers."""

    def write(self, part: str, rows: Sequence[References]) -> None:
        """Each source's place, with the number of the result in its file."""
        pairs = [(number, source, leaf) for number, (_, found) in enumerate(rows) for source, leaf in found]
        columns = {
            "result": pa.array([number for number, *_ in pairs], pa.int64()),
            "file": pa.array([f"{source}/{leaf.file}" for _, source, leaf in pairs]).dictionary_encode(),
            "position": pa.array([leaf.position for *_, leaf in pairs], pa.int64()),
        }
        write_table(self.folder / f"{part}.parquet", pa.table(columns))


class Way(NamedTuple):
    """What is kept as assertions, what is told live, and by whom it is executed."""

    keep: Keep | None = None
    live: Expiry | None = None
    execution: type[Execution] = Execution

    def begin(self, workshop: Workshop) -> Execution:
        """Make it ready, in this process."""
        return self.execution(workshop, keep=self.keep, live=self.live)


WAYS = {
    "none": Way(),
    "needed keys": Way(keep="needed"),
    "backward": Way(execution=Backward),
    "live": Way(live="exact"),
    "live by U": Way(live="reach"),
}
