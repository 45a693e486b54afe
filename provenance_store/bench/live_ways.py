"""Ways to execute a query that `headwater bench live` compares: by what they tell of where results came from."""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from provenance_store.model.files import write_whole
from provenance_store.streams.assertions import Keep
from provenance_store.streams.execution import Execution
from provenance_store.streams.folders import Workshop
from provenance_store.streams.lanes import Lanes
from provenance_store.streams.live_messages import LiveMessage
from provenance_store.streams.telling import Expiry


class Backward(Execution):
    """Source ids carried through every operator by link records, unfolded at the sink, and written beside results."""

    def __init__(self, workshop: Workshop, **chosen: Any) -> None:
        super().__init__(workshop, trails=True, **chosen)
        self.results = self.sources = self.written = 0

    def step(self, lanes: Lanes, until: int, rejected: Sequence[bytes] = ()) -> list[LiveMessage]:
        """Go on to a time; of each result the ids of its sources are written."""
        rows = []
        for one in self.land(lanes, until, rejected):
            sources = one.move.engine.sources_of(one.event.key)
            rows.append((one.id, [self.landing.source_id(source, leaf) for source, leaf in sources]))
        for lane in lanes.at_work():
            deque(lane.engine.forget(), maxlen=0)  # what is alive is of no interest here
        if rows:
            encoded = msgspec.json.encode(rows)
            folder = self.workshop.folder / "references"
            folder.mkdir(exist_ok=True)
            write_whole(folder / f"{lanes.bucket:03}-{lanes.step:06}.json", encoded)
            self.written += len(encoded)
        self.results += len(rows)
        self.sources += sum(len(sources) for _, sources in rows)
        return []


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
