"""A captured Spark run: reads versions with the ids of their records, writes new ones, sends the manifest.

Executors send provenance themselves, each task its own; what an attempt sent counts only when Spark says that the
attempt succeeded, because its receipt comes home in an accumulator, which Spark adds up over successful tasks alone.
"""

import re
import secrets
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from provenance_store.errors import InputError, JobError
from provenance_store.lake import layout
from provenance_store.model.ids import version_prefix
from provenance_store.model.keys import KeyRing
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from spark_apps.capture.dataframe import TrackedFrame
from spark_apps.capture.files import OutputFormat, open_input, output_format, settle
from spark_apps.capture.plans import key_columns
from spark_apps.capture.run import Run, RunResult
from spark_apps.capture.tokens import Token, group_pair, token_columns
from spark_apps.capture.writer import Policy
from spark_apps.session import kafka_producer_options

if TYPE_CHECKING:
    from spark_apps.capture.rdd import TrackedRDD

_PACKAGE = "io.headwater.capture"
# What a Python worker raised stands at the end of its traceback; what a JVM raised, behind the last cause.
_CAUSES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^provenance_store\.errors\.\w+: (.+)$",
        r"^Caused by: (?!org\.apache\.spark\.api\.python\.PythonException)[\w.$]+: (.+)$",
        r"^: (?!org\.apache\.spark\.SparkException)[\w.$]+: (.+)$",
        r"^(\w[\w.]*(?:Error|Exception|Interrupt): .+)$",
    )
)


class SparkRun:
    """What a Spark DIC is given: `read`, `write`, `view` and the Spark session."""

    def __init__(self, settings: Settings, session: SparkSession, context: Run) -> None:
        self.spark = session
        self.settings = settings
        self.inputs: list[layout.Version] = []
        self.outputs: list[tuple[layout.Version, Path]] = []
        self.marks: set[str] = set()
        self._context = context
        self._keys = KeyRing(settings)
        self._views: dict[str, TrackedFrame] = {}
        self._operations = 0
        self._more_receipts: list[Callable[[], dict[str, int]]] = []
        self._nonce = secrets.token_hex(4)
        self._package: Any = session._jvm
        for part in _PACKAGE.split("."):
            self._package = getattr(self._package, part)
        self._receipts = session._jsc.sc().collectionAccumulator(f"headwater receipts {self._nonce}")
        self._info = self._make_info()
        self._package.TapFunctions.registerTokens(session._jsparkSession)

    @property
    def java(self) -> Any:
        """The driver's JVM."""
        return self.spark._jvm

    @property
    def jvm(self) -> Any:
        """The Java side of capture."""
        return self._package

    # --- reading

    def read(self, reference: str, **options: Any) -> TrackedFrame:
        """A version of a dataset, `dataset/version` or the newest of `dataset`, with the ids of its records.

        `format` (parquet, jsonl, csv, text) is told by the files' names where it is not given; `schema`; `key`, the
        columns of a declared key, `personal_key=True` where it must be hashed; the rest are Spark's own options.
        """
        version = layout.resolve(self.settings.lake, reference)
        if version not in self.inputs:
            self.inputs.append(version)
        return open_input(self, version, options)

    def text(self, reference: str) -> "TrackedRDD":
        """The lines of a version as an RDD, with the ids of its records."""
        from spark_apps.capture.rdd import read_text  # noqa: PLC0415 - the two need each other

        version = layout.resolve(self.settings.lake, reference)
        if version not in self.inputs:
            self.inputs.append(version)
        return read_text(self, version)

    def view(
        self, name: str, *, dataset: str, version: str, key: Sequence[str], personal_key: bool = False
    ) -> TrackedFrame:
        """A SQL view or table of the session as an input; its records are known by their key."""
        return self.keyed(self.spark.table(name), dataset, version, key, personal=personal_key)

    def table(self, name: str) -> TrackedFrame:
        """A frame that was named with `createOrReplaceTempView`."""
        if name not in self._views:
            raise InputError(
                f"There is no tracked view {name!r}. Name a frame with createOrReplaceTempView, or read a view of the "
                "session with `run.view(name, dataset=…, version=…, key=[…])`."
            )
        return self._views[name]

    def name_view(self, name: str, frame: TrackedFrame) -> None:
        """Remember a frame under a name."""
        self._views[name] = frame

    def keyed(
        self, frame: DataFrame, dataset: str, version: str, key: Sequence[str], *, personal: bool
    ) -> TrackedFrame:
        """A plain frame whose records are known by their key."""
        secret = self._keys.of_version(dataset, version) if personal else None
        tap, operation = self._tap("KEYED_INPUT", "read", _namespace(dataset, version) + "#", "", secret)
        a, b = group_pair(operation, key_columns(frame, list(key)))
        text = F.array(*(frame[name].cast("string") for name in key))
        token = Token.pair()
        told = frame.filter(F.call_function(tap, a, b, text))
        return TrackedFrame(self, told.withColumns({token.a: a, str(token.b): b}), [token])

    # --- writing

    def write(
        self,
        frame: TrackedFrame,
        dataset: str,
        *,
        format: str = "parquet",  # noqa: A002 - Spark's name
        key: Sequence[str] | None = None,
        personal_key: bool = False,
        **options: Any,
    ) -> None:
        """A new version of a dataset, named after the run. Records are known by file and place, or by `key`."""
        version = layout.version_of(self.settings.lake, dataset, self._context.run)
        layout.refuse_existing(version)
        unfinished = layout.unfinished_path(version)
        made = output_format(format, options)
        self.marks.update(map(str, self._package.Marks.of(frame.untracked._jdf)))
        tapped = self._tap_output(frame, version, made, key, personal=personal_key)
        made.write(tapped, unfinished)
        settle(unfinished, made.suffix)
        self.outputs.append((version, unfinished))

    def _tap_output(
        self,
        frame: TrackedFrame,
        version: layout.Version,
        made: OutputFormat,
        key: Sequence[str] | None,
        *,
        personal: bool,
    ) -> DataFrame:
        tokens, plain = token_columns(frame._tokens), frame._frame
        namespace = _namespace(version.dataset, version.name)
        if key:
            secret = self._keys.of_version(version.dataset, version.name) if personal else None
            tap, _ = self._tap("KEYED", "write", namespace + "#", "", secret)
            subject = [F.array(*(plain[name].cast("string") for name in key))]
        elif made.is_lines:
            plain = made.as_lines(frame)
            tap, _ = self._tap("LINES", "write", namespace + "/", made.suffix)
            subject = [F.octet_length("value")]
        else:
            tap, _ = self._tap("ROWS", "write", namespace + "/", made.suffix)
            subject = []
        told = plain.filter(F.call_function(tap, *subject, *tokens))
        if key and made.is_lines:
            told = made.as_lines(TrackedFrame(self, told, frame._tokens))
        return told.drop(*(name for token in frame._tokens for name in token.names))

    def tell(self, frame: DataFrame) -> None:
        """Evaluate a frame for the sake of its taps alone."""
        frame.write.format("noop").mode("overwrite").save()

    # --- what frames and RDDs ask of their run

    @property
    def context(self) -> Run:
        """Run id, DIC, topic and policy."""
        return self._context

    @property
    def nonce(self) -> str:
        """Tells this execution's attempts from those of an earlier one under the same run id."""
        return self._nonce

    def operation(self, name: str) -> str:
        """A name for the next operation; its number is its place in the program, the same at every execution."""
        self._operations += 1
        return f"{name.replace(' ', '-')}-{self._operations}"

    def add_receipts(self, receipts: Callable[[], dict[str, int]]) -> None:
        """Ask here too, at the end, what each successful attempt sent."""
        self._more_receipts.append(receipts)

    def mark(self, operation: str) -> None:
        """The run crossed an operation where taking a record away can make new outputs."""
        self.marks.add(operation)

    def group_tap(self, name: str) -> tuple[str, str]:
        """A function that tells members of groups, and the operation that names the groups."""
        return self._tap("GROUP", name, "", "")

    def column_at(self, frame: DataFrame, place: int) -> Column:
        """A column by its place, where its name may be taken twice."""
        attribute = frame._jdf.queryExecution().analyzed().output().apply(place)
        return Column(self.java.org.apache.spark.sql.classic.ExpressionUtils.column(attribute))

    def add_file(self, address: str, prefix: str) -> int:
        """A token's first long means this file; two that shared one are refused."""
        return int(self._info.addFile(address, prefix))

    def _tap(self, kind: str, function: str, target: str, suffix: str, secret: bytes | None = None) -> tuple[str, str]:
        operation = self.operation(function)
        name = f"headwater_tap_{self._nonce}_{self._operations}"
        tap, hidden = f"t{self._operations}", None if secret is None else bytearray(secret)
        self._package.TapFunctions.register(
            self.spark._jsparkSession, name, tap, self._info, kind, operation, target, suffix, hidden
        )
        return name, operation

    def receipts(self) -> dict[str, int]:
        """What each successful attempt sent."""
        told = (str(line).split("\t") for line in self._receipts.value())
        found = {attempt: int(count) for attempt, count in told}
        for more in self._more_receipts:
            found |= more()
        return found

    def _make_info(self) -> Any:
        settings, context = self.settings, self._context
        kafka = self.java.java.util.HashMap()
        if settings.recordings is None:
            for name, value in kafka_producer_options(settings).items():
                kafka.put(name, value)
        config = self._package.SinkConfig(
            context.topic,
            settings.kafka.partitioning,
            context.policy == "degrade",
            round(settings.kafka.timeout_seconds * 1000),
            None if settings.recordings is None else str(settings.recordings.absolute()),
            kafka,
        )
        secret = blake2b(context.run.encode(), key=settings.hmac_key(), digest_size=16).digest()
        halves = [int.from_bytes(secret[at : at + 8], signed=True) for at in (0, 8)]
        return self._package.RunInfo(context.run, context.dic, self._nonce, self._receipts, config, *halves)


def run_spark(
    dic: str,
    body: Callable[[SparkRun], None],
    *,
    settings: Settings,
    session: SparkSession,
    run: str,
    outputs: Sequence[str],
    policy: Policy = "fail",
    say: Say = lambda _: None,
) -> RunResult:
    """Execute a DIC's body under capture: outputs, manifest, versions, in the order that `run.py` explains."""
    layout.refuse_remote(settings.lake)
    context = Run(settings, dic=dic, run=run, policy=policy)
    started = time.monotonic()
    versions = [layout.version_of(settings.lake, dataset, run) for dataset in outputs]
    with context.alone(say):
        done = context.finished(versions)
        if done is not None:
            say(f"run {run} is finished already; nothing was done")
            return done
        for version in versions:
            layout.remove_unfinished(version)
        context.open_topic()
        context.open_early()
        captured = SparkRun(settings, session, context)
        _execute(body, captured)
        _check_outputs(outputs, [version.dataset for version, _ in captured.outputs])
        manifest, sent = context.send_manifest(lambda _: captured.receipts(), marks=sorted(captured.marks))
        result = RunResult(
            run=run,
            dic=dic,
            topic=context.topic,
            inputs=[version.reference for version in captured.inputs],
            outputs=[version.reference for version, _ in captured.outputs],
            generation=manifest.generation,
            messages=sum(manifest.attempts.values()),
            writers=len(manifest.attempts),
            manifest_sent=sent,
            seconds=round(time.monotonic() - started, 3),
        )
        context.publish(result, {unfinished: version for version, unfinished in captured.outputs})
    return result


def _execute(body: Callable[[SparkRun], None], captured: SparkRun) -> None:
    try:
        body(captured)
    except AnalysisException:
        raise  # the program is wrong, and where it is wrong is what its author needs
    except (Py4JJavaError, CapturedException) as error:
        context = captured.context
        raise JobError(
            f"Spark job {context.dic}, run {context.run}, failed; no manifest was sent and no version was written. "
            f"Spark said: {_root_cause(error)}"
        ) from error


def _root_cause(error: Exception) -> str:
    """What a failing task said, without the ways that led there."""
    said = str(error)
    for pattern in _CAUSES:
        if found := pattern.findall(said):
            return str(found[-1]).strip()
    return next((line for line in said.splitlines() if line.strip()), type(error).__name__).strip()


def _check_outputs(declared: Sequence[str], written: Sequence[str]) -> None:
    if sorted(declared) != sorted(written):
        raise InputError(
            f"The DIC declares the outputs {', '.join(declared)} and wrote {', '.join(written) or 'none'}: "
            "declare all that it writes, and write each once."
        )


def _namespace(dataset: str, version: str) -> str:
    return "urn:" + version_prefix(dataset, version)
