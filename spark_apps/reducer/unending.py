"""The reducer of a stream that never ends: dependencies come out step by step, and their state goes with the watermark.

A step is a batch of the stream. What it makes final is a file of its own in each run's graph, named after the batch and
written, hidden, before the batch is done; what it carries on is what makes the batch done; then the files are shown and
the accounts that count them written. So a reducer that dies between any two of these does the batch again, over the
same files, or shows them when it is started again.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.errors import InputError, JobError
from provenance_store.model.account import ACCOUNT_FILE, Account
from provenance_store.model.failpoints import reach
from provenance_store.reduction.completeness import UNKNOWN_RUN
from provenance_store.reduction.output import GRAPH, folder_of, prepare_folder
from provenance_store.reduction.schemas import NAME_SCHEMA
from provenance_store.reduction.state import EDGES, NAMES, TIMES, Part, State, Steps
from provenance_store.reduction.unending import (
    BEFORE_ALL,
    TOLD_EDGE_SCHEMA,
    Carried,
    Step,
    UnendingAccount,
    advance,
    move_watermark,
    spell_time,
)
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.reducer.app import hold_state
from spark_apps.reducer.metrics import Metrics
from spark_apps.reducer.progress import Place
from spark_apps.reducer.stream import Stream

_NOTE = "note.json"
# Steps in a period: results wait little longer than they must, and are not scattered over many small files.
_STEPS_A_PERIOD = 10
_MOST_SECONDS_A_STEP = 60.0


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    """What is known after a step, beside the tables: the time of each partition, and the account of each run."""

    watermark: int
    times: dict[int, int]
    begun: int  # when the first batch was begun to be read
    accounts: dict[str, UnendingAccount]


_BEGINNING = _Note(watermark=BEFORE_ALL, times={}, begun=0, accounts={})


def follow(
    spark: SparkSession,
    settings: Settings,
    *,
    topic: str,
    out: Path,
    period: float,
    stopped: Callable[[], bool],
    finished: Callable[[Path, Account], None],
    metrics: Metrics | None = None,
    say: Say = lambda _: None,
) -> None:
    """Follow a topic until stopped; an item is closed so many seconds after it was last told of."""
    KafkaTransport(settings).source(topic).close()  # says plainly where there is no such topic
    with hold_state(settings, "unending", topic, str(out.absolute()), say=say) as state:
        state.open()
        follower = _Follower(settings, state, topic, out, round(period * 1000), finished, metrics or Metrics(), say)
        stream = Stream(
            spark,
            settings,
            state,
            ("subscribe", topic),
            done=follower.resume(),
            keep=follower.keep,
            watch=follower.watch,
            lagging=follower.lag,
            say=say,
        )
        stream.follow(stopped, every=min(period / _STEPS_A_PERIOD, _MOST_SECONDS_A_STEP))


@dataclass
class _Follower:
    """Makes steps of batches."""

    settings: Settings
    state: State
    topic: str
    out: Path
    period: int
    finished: Callable[[Path, Account], None]
    metrics: Metrics
    say: Say
    _note: _Note = _BEGINNING
    _waiting: Mapping[Place, int] = field(default_factory=dict)
    _observed: Observation = field(default_factory=Observation)

    def __post_init__(self) -> None:
        self._steps = Steps(self.state)

    def resume(self) -> int:
        """Go on after the last step; its batch."""
        newest = self._steps.newest()
        if newest is None:
            return -1
        batch, folder = newest
        self._note = msgspec.json.decode((folder / _NOTE).read_bytes(), type=_Note)
        for run in self._note.accounts:
            if not (self._graph(run)).is_dir():
                raise InputError(
                    f"{self._graph(run)} is gone, and what was written there is not read a second time. Bring it "
                    "back, or follow the topic into another folder."
                )
        self._publish(batch)
        return batch

    def lag(self, waiting: Mapping[Place, int]) -> None:
        """So many messages wait."""
        self._waiting = dict(waiting)
        self.metrics.lag(waiting)

    def watch(self, records: DataFrame) -> DataFrame:
        """Have the messages that are older than the watermark counted as they are read."""
        run = F.try_element_at(F.filter("headers", lambda header: header["key"] == "run"), F.lit(-1))["value"]
        is_late = F.unix_millis("timestamp") < F.lit(self._note.watermark)
        late = F.to_json(F.collect_list(F.when(is_late, F.coalesce(F.hex(run), F.lit("")))))
        self._observed = Observation()
        return records.observe(self._observed, late.alias("late"))

    def keep(self, batch: int, parts: list[Part]) -> None:
        """Make a step of what a batch brought."""
        late, fresh = self._count_late(), _by_run(parts)
        times, watermark = self._move_watermark(parts)
        accounts, grown = {}, []
        with self._steps.write(batch) as folder:
            for number, run in enumerate(sorted({*self._note.accounts, *fresh})):
                before = self._note.accounts.get(run) or UnendingAccount.begin(run)
                own, carried = fresh.get(run, []), self._carried(run)
                if not own and carried.is_nothing:
                    accounts[run] = before
                    continue
                step = advance(carried, *self._told(own), watermark)
                self._check_size(run, step)
                self._write_graph(batch, run, step.graph)
                if not step.carried.is_nothing:
                    _write_carried(folder / str(number), step.carried)
                accounts[run] = before.add(
                    self.state.read_messages(own),
                    step,
                    edges_local=sum(part.edges for part in own),
                    late=late[run],
                    watermark=watermark,
                    seconds=time.time() - self._begun(parts) / 1000,
                )
                grown += [run] if step.graph.height else []
            note = _Note(watermark=watermark, times=times, begun=self._begun(parts), accounts=accounts)
            (folder / _NOTE).write_bytes(msgspec.json.encode(note))
            reach("step written")
        reach("step kept")
        earlier, self._note = self._note, note
        self._publish(batch)
        self.state.discard(parts)
        self.metrics.read(parts)
        self._tell(batch, earlier, grown)

    def _count_late(self) -> "Counter[str]":
        runs = [bytes.fromhex(run).decode("utf-8", "replace") for run in json.loads(self._observed.get["late"])]
        return Counter(run or UNKNOWN_RUN for run in runs)

    def _move_watermark(self, parts: Sequence[Part]) -> tuple[dict[int, int], int]:
        times = dict(self._note.times)
        for part in parts:
            times[part.partition] = max(times.get(part.partition, part.told_at), part.told_at)
        waiting = {place.partition for place, messages in self._waiting.items() if messages}
        holding = waiting | {part.partition for part in parts}
        return times, move_watermark(self._note.watermark, times, holding, period=self.period)

    def _carried(self, run: str) -> Carried:
        newest = self._steps.newest()
        if newest is None or run not in self._note.accounts:
            return Carried.nothing()
        return _read_carried(newest[1] / str(list(self._note.accounts).index(run)))

    def _told(self, parts: Sequence[Part]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The edges that were told, with the times of their messages, and the names in them."""
        edges = [
            pl.read_parquet(path).join(times, on="message").select(TOLD_EDGE_SCHEMA.names())
            for part in parts
            for path in self.state.tables([part], EDGES)
            for times in map(pl.read_parquet, self.state.tables([part], TIMES))
        ]
        names = map(pl.read_parquet, self.state.tables(parts, NAMES))
        return pl.concat([pl.DataFrame(schema=TOLD_EDGE_SCHEMA), *edges]), pl.concat(
            [pl.DataFrame(schema=NAME_SCHEMA), *names]
        )

    def _check_size(self, run: str, step: Step) -> None:
        carried, most = step.carried.edges.height + step.carried.given.height, self.settings.reducer.edges_carried
        if carried > most:
            raise JobError(
                f"Run {run} of topic {self.topic} has {carried:,} edges that may still be added to, more than the "
                f"{most:,} that may be held in memory. Start again with a shorter --watermark, which closes items "
                "sooner, or set HEADWATER_REDUCER__EDGES_CARRIED higher: a million edges take about 0.1 GB."
            )

    def _write_graph(self, batch: int, run: str, graph: pl.DataFrame) -> None:
        """The step's file in the run's graph; the first step makes the graph, be it empty."""
        is_new = run not in self._note.accounts
        if is_new:
            self._refuse_to_overwrite(run)
            prepare_folder(self._folder(run))
            self._graph(run).mkdir()
        hidden = self._graph(run) / f".{_file(batch)}"
        if graph.height or is_new:
            graph.write_parquet(hidden)
        else:  # a try of this batch that died may have had something to write
            hidden.unlink(missing_ok=True)

    def _refuse_to_overwrite(self, run: str) -> None:
        if (self._folder(run) / ACCOUNT_FILE).exists():
            raise InputError(
                f"{self._folder(run)} holds a reduced graph that was not written by this reducer, and may be all there "
                "is of it. Remove it, or follow the topic into another folder."
            )

    def _begun(self, parts: Sequence[Part]) -> int:
        return self._note.begun or min((part.read_at for part in parts), default=0)

    def _publish(self, batch: int) -> None:
        """Show the step's files together with the accounts that count them."""
        for run, account in self._note.accounts.items():
            hidden = self._graph(run) / f".{_file(batch)}"
            if hidden.exists():
                hidden.rename(self._graph(run) / _file(batch))
            account.write(self._folder(run))

    def _tell(self, batch: int, earlier: _Note, grown: Sequence[str]) -> None:
        for run in grown:
            self.finished(self._folder(run), self._note.accounts[run])
        for run, account in self._note.accounts.items():
            if account.refused and run not in earlier.accounts:
                self.say(f"run {run} is not reduced. {account.refused}")
        now, then = _add_up(self._note), _add_up(earlier)
        self.metrics.step(
            final=now.final - then.final,
            late=now.late - then.late,
            unmade=now.unmade - then.unmade,
            carried=now.carried,
            watermark=max(self._note.watermark, 0),
        )
        self.say(
            f"step {batch}: {now.final - then.final:,} dependencies became final, {now.carried:,} edges are carried "
            f"on; so far {now.late:,} messages came late, and {now.unmade:,} items were used that nothing told the "
            f"making of; the watermark is {spell_time(self._note.watermark) or 'not set yet'}"
        )

    def _folder(self, run: str) -> Path:
        return folder_of(self.out, run, alone=False)

    def _graph(self, run: str) -> Path:
        return self._folder(run) / GRAPH


class _Sums(NamedTuple):
    """What the accounts of all runs add up to."""

    final: int
    late: int
    unmade: int
    carried: int


def _add_up(note: _Note) -> _Sums:
    accounts = note.accounts.values()
    return _Sums(
        final=sum(account.edges_out for account in accounts),
        late=sum(account.late for account in accounts),
        unmade=sum(account.unmade for account in accounts),
        carried=sum(account.carried for account in accounts),
    )


def _by_run(parts: Iterable[Part]) -> dict[str, list[Part]]:
    """The parts of each run; how many runs there will be is not known, so strays are one by themselves."""
    found: dict[str, list[Part]] = {}
    for part in parts:
        found.setdefault(part.run or UNKNOWN_RUN, []).append(part)
    return found


def _file(batch: int) -> str:
    return f"step-{batch:09}.parquet"


def _write_carried(folder: Path, carried: Carried) -> None:
    folder.mkdir()
    for name, table in carried._asdict().items():
        table.write_parquet(folder / f"{name}.parquet")


def _read_carried(folder: Path) -> Carried:
    if not folder.exists():
        return Carried.nothing()
    return Carried(*(pl.read_parquet(folder / f"{name}.parquet") for name in Carried._fields))
