"""Whether stream jobs go on: none stands still, drops much of what comes, or tells more live than is followed."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from provenance_store.graph.following import GROUP
from provenance_store.health.finding import Fault
from provenance_store.settings import Settings
from provenance_store.streams.live_messages import topic_of
from provenance_store.streams.service import Job, count_events, jobs, read_query
from provenance_store.transport.kafka import KafkaTransport

STILL_MINUTES = 60.0
# Of all that came, how much may have come too late or be no event.
SHARE = 0.01
LAG = 100_000


def find_standing(found: Sequence[Job], *, minutes: float = STILL_MINUTES) -> Iterator[Fault]:
    """Runs that are under way, and have not got on for so long."""
    before = datetime.now(UTC) - timedelta(minutes=minutes)
    for job in found:
        if job.state == "running" and job.heard < before:
            when = job.heard.isoformat(timespec="seconds")
            yield Fault(
                job.run,
                f"{job.query} is under way and has not got on since {when}: nothing came, or nobody runs it. "
                "Run it again with --follow to take it up, or without to end it.",
            )


def find_dropping(settings: Settings, found: Sequence[Job], *, share: float = SHARE) -> Iterator[Fault]:
    """Runs of whose events more than this share came too late, or could not be read."""
    for job in found:
        dropped = job.late + job.rejected
        # Counting takes a look at every file: only where there is something to compare.
        if not dropped or (query := read_query(settings.home, settings.lake, job.run)) is None:
            continue
        came = count_events(settings.lake, job.run, query) + dropped
        if dropped > share * came:
            yield Fault(
                job.run,
                f"of {came:,} events of {job.query} {job.late:,} came too late and {job.rejected:,} could not be read: "
                "give its sources more lateness, or see what is sent.",
            )


def find_lagging(found: Sequence[Job], lags: Mapping[str, int], *, most: int = LAG) -> Iterator[Fault]:
    """Runs under way whose live topic holds more than so many messages that are not in the lake graph yet."""
    for job in found:
        if job.state == "running" and (lag := lags.get(topic_of(job.query), 0)) > most:
            yield Fault(
                job.run,
                f"{lag:,} live messages of {job.query} are not in the lake graph yet: run "
                "`headwater streams follow-live`, several times where one does not keep up.",
            )


def live_lags(settings: Settings) -> dict[str, int]:
    """Of each topic of live provenance, how many messages are not in the lake graph yet."""
    return KafkaTransport(settings).lags(topic_of(""), GROUP)


def check_streams(
    settings: Settings, *, minutes: float = STILL_MINUTES, share: float = SHARE, most: int = LAG
) -> Iterator[Fault]:
    """All of these. Kafka is asked only where something is under way."""
    found = jobs(settings.home, settings.lake)
    yield from find_standing(found, minutes=minutes)
    yield from find_dropping(settings, found, share=share)
    if any(job.state == "running" for job in found):
        yield from find_lagging(found, live_lags(settings), most=most)
