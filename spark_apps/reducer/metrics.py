"""What a reducer does, as metrics in Prometheus' text format on a port of this machine."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from provenance_store.errors import ServiceError
from provenance_store.model.account import Account
from provenance_store.reduction.state import Part
from provenance_store.settings import LOOPBACK
from spark_apps.reducer.progress import Place


class Metrics:
    """The numbers of one reducer."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def count(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"headwater_{name}", text, labels, registry=self._registry)

        self._messages = count("messages", "Messages read", "topic")
        self._bytes = count("bytes", "Bytes of messages read", "topic")
        self._rejected = count("rejected", "Messages that could not be read", "topic")
        self._edges_in = count("edges_in", "Edges read", "topic")
        self._edges_local = count("edges_local", "Edges left by local reducers", "topic")
        self._edges_out = count("edges_out", "Dependencies in finished graphs")
        self._finished = count("runs_finished", "Graphs written", "verdict")
        self._too_late = count("too_late", "Messages of runs that were finished and freed", "topic")
        self._late = count("late", "Messages older than the watermark when they came")
        self._unmade = count("unmade", "Items that were used and that nothing told the making of")

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"headwater_{name}", text, labels, registry=self._registry)

        self._waiting = gauge("waiting", "Messages not read yet", "topic", "partition")
        self._carried = gauge("carried", "Edges that a stream without end carries on")
        self._watermark = gauge("watermark_seconds", "Up to when dependencies of a stream without end are final")

    def serve(self, port: int) -> int:
        """Answer on the port, or on any where it is 0; the port."""
        try:
            server, _ = start_http_server(port, LOOPBACK, self._registry)
        except OSError as error:
            raise ServiceError(
                f"Metrics cannot be served on port {port}: {error.strerror}. Set HEADWATER_REDUCER__METRICS_PORT."
            ) from error
        return int(server.server_port)

    def read(self, parts: Iterable[Part]) -> None:
        """A batch was read."""
        for part in parts:
            self._messages.labels(part.topic).inc(part.messages)
            self._bytes.labels(part.topic).inc(part.bytes)
            self._rejected.labels(part.topic).inc(part.rejected)
            self._edges_in.labels(part.topic).inc(part.edges_in)
            self._edges_local.labels(part.topic).inc(part.edges)

    def lag(self, waiting: Mapping[Place, int]) -> None:
        """So many messages wait."""
        for place, messages in waiting.items():
            self._waiting.labels(place.topic, str(place.partition)).set(messages)

    def finished(self, account: Account) -> None:
        """A graph was written."""
        self._edges_out.inc(account.edges_out)
        self._finished.labels(account.verdict).inc()

    def came_too_late(self, topic: str, messages: int) -> None:
        """Messages of a run came after it was finished and what was kept of it was freed."""
        self._too_late.labels(topic).inc(messages)

    def step(self, *, final: int, late: int, unmade: int, carried: int, watermark: int) -> None:
        """A stream without end has made a step; the watermark is in milliseconds."""
        self._edges_out.inc(final)
        self._late.inc(late)
        self._unmade.inc(unmade)
        self._carried.set(carried)
        self._watermark.set(watermark / 1000)
