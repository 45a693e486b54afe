"""A run executed step by step: what came is taken in, lands, and is told live. Spark's workers do this, and tests."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from provenance_store.model.failpoints import reach as failpoint
from provenance_store.streams.assertions import Keep
from provenance_store.streams.engine import Arrival, Plan
from provenance_store.streams.event import END
from provenance_store.streams.folders import Begun, Workshop
from provenance_store.streams.landing import Landed, Landing
from provenance_store.streams.lanes import Lanes, bucket_of
from provenance_store.streams.live_messages import LiveMessage
from provenance_store.streams.query import StreamQuery
from provenance_store.streams.telling import Expiry, Telling


class Execution:
    """Makes the steps of a run, in its workshop. Of buckets that others execute it knows nothing.

    Every so many steps the state is kept, and so many of the last states are. With `trails`, or where it is told live,
    engines know of every result which records of sources it was made from.
    """

    def __init__(
        self,
        workshop: Workshop,
        *,
        capture: bool = False,
        keep: Keep | None = "needed",
        live: Expiry | None = None,
        trails: bool = False,
        checkpoint_every: int = 10,
        checkpoints: int = 20,
    ) -> None:
        self.workshop = workshop
        self._every, self._most = checkpoint_every, checkpoints
        trails = trails or live is not None
        self._plan = Plan(workshop.query, parents=capture, trails=trails)
        self.landing = Landing(workshop, capture=capture, keep=keep, trace=trails)
        self._telling = Telling(workshop.query, workshop.run, live) if live else None

    def lanes(self, bucket: int, state: bytes | None) -> Lanes:
        """The lanes of a bucket, as they were put away."""
        lanes = Lanes(self._plan, bucket, state, self._telling.begin if self._telling else None)
        if state is not None and lanes.step % self._every == 0:
            self.workshop.checkpoints(bucket).write(lanes.step, state, most=self._most)
        return lanes

    def step(self, lanes: Lanes, until: int, rejected: Sequence[bytes] = ()) -> list[LiveMessage]:
        """Go on to a time, and write all that happens; what is told live."""
        landed = self.land(lanes, until, rejected)
        failpoint("step landed")
        return [] if self._telling is None else list(self._telling.messages(lanes, self.landing, landed))

    def land(self, lanes: Lanes, until: int, rejected: Sequence[bytes] = ()) -> list[Landed]:
        """Go on to a time, and write all that happens; the results."""
        moves = lanes.advance(until)
        self.landing.reject(lanes, rejected)
        return self.landing.take(lanes, moves)


def run_locally(
    home: Path,
    lake: Path,
    query: StreamQuery,
    run: str,
    batches: Iterable[tuple[Sequence[Arrival], int]],
    *,
    buckets: int = 1,
    live: Expiry | None = None,
    checkpoint_every: int = 10,
) -> tuple[dict[str, list[Path]], list[LiveMessage]]:
    """Execute a query here and to its end, on arrivals with the watermark behind each batch.

    What it returns are the versions that were made, by dataset, and what was told live.
    """
    workshop = Workshop(home, run, query)
    workshop.open(Begun(buckets=buckets))
    execution = Execution(workshop, live=live, checkpoint_every=checkpoint_every)
    states: dict[int, bytes] = {}
    told: list[LiveMessage] = []
    late = 0
    for arrivals, until in [*batches, ([], END)]:
        late = 0
        for bucket in range(buckets):
            lanes = execution.lanes(bucket, states.get(bucket))
            lanes.add(one for one in arrivals if bucket_of(query, one.content, buckets) == bucket)
            told += execution.step(lanes, until)
            late += lanes.late
            states[bucket] = lanes.put_away()
    return workshop.finish(lake, late), told
