"""The jobs that are measured. A tracked RDD or frame has the methods of a plain one, so both run the same lines."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from provenance_store.errors import JobError
from provenance_store.lake import layout
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from spark_apps.bench import data, hashtags
from spark_apps.capture.hadoop import RunResult, run_job
from spark_apps.capture.hadoop_engine import LocalEngine, quote_command
from spark_apps.capture.jar import capture_jars
from spark_apps.capture.spark_run import run_spark
from spark_apps.dics.hashtag_count import find_hashtags
from spark_apps.session import open_session

OUTPUT = "bench_output"
_LANGUAGES = {"en", "es", "ja"}
_FEW_CENTS = 50_000


@dataclass(frozen=True)
class World:
    """Where the cases run, and on how much."""

    settings: Settings
    rows: int
    tweets: int
    say: Say

    @cached_property
    def spark(self) -> SparkSession:
        """One session for all cases."""
        return open_session(self.settings, "headwater-bench", capture_jars(self.settings, self.say))

    @cached_property
    def tweets_version(self) -> layout.Version:
        """The tweets."""
        return data.make_tweets(self.settings.lake, self.tweets, self.say)

    @cached_property
    def orders_version(self) -> layout.Version:
        """The orders."""
        return data.make_orders(self.settings.lake, self.rows, self.say)

    @property
    def customers_version(self) -> layout.Version:
        """The customers, which are made with the orders."""
        return layout.resolve(self.settings.lake, f"bench_customers/{self.orders_version.name}")

    @property
    def plain_output(self) -> Path:
        """Where jobs without provenance write."""
        return self.settings.home / f"plain-output-{os.getpid()}"


@dataclass(frozen=True)
class Case:
    """One job: how many records it reads, how it runs plain, and how captured, as which DIC and run."""

    records: Callable[[World], int]
    plain: Callable[[World], None]
    captured: Callable[[World, str, str], RunResult]
    # That both wrote the same, where that is told by the bytes.
    check: Callable[[World, str], None] = lambda world, run: None


def _rdd_case(build: Callable[[Any], Any]) -> Case:
    def plain(world: World) -> None:
        lines = world.spark.sparkContext.textFile(str(world.tweets_version.path))
        build(lines).saveAsTextFile(str(world.plain_output))

    def captured(world: World, dic: str, run: str) -> RunResult:
        return _run(world, dic, run, lambda job: build(job.text(world.tweets_version.reference)).saveAsTextFile(OUTPUT))

    return Case(lambda world: world.tweets, plain, captured)


def _frame_case(build: Callable[..., Any], *inputs: Callable[[World], layout.Version]) -> Case:
    def plain(world: World) -> None:
        frames = [world.spark.read.parquet(str(version(world).path)) for version in inputs]
        build(*frames).write.parquet(str(world.plain_output))

    def captured(world: World, dic: str, run: str) -> RunResult:
        return _run(
            world, dic, run, lambda job: build(*(job.read(one(world).reference) for one in inputs)).write(OUTPUT)
        )

    return Case(lambda world: world.rows, plain, captured)


def _run(world: World, dic: str, run: str, body: Callable[[Any], None]) -> RunResult:
    return run_spark(dic, body, settings=world.settings, session=world.spark, run=run, outputs=[OUTPUT])


def _narrow(lines: Any) -> Any:
    def shorten(line: str) -> tuple[str, str]:
        tweet = json.loads(line)
        return tweet["language"], f"{tweet['handle']}\t{tweet['time']}\t{tweet['language']}"

    chosen = lines.map(shorten).filter(lambda pair: pair[0] in _LANGUAGES)
    return chosen.map(lambda pair: pair[1])


def _count_hashtags(lines: Any) -> Any:
    def pairs(line: str) -> Iterator[tuple[str, int]]:
        return ((hashtag, 1) for hashtag, _ in find_hashtags(0, line))

    return lines.flatMap(pairs).reduceByKey(add).map(lambda pair: f"{pair[0]}\t{pair[1]}")


def _filter(orders: Any) -> Any:
    return orders.filter(F.col("cents") < _FEW_CENTS).select("number", "product", (F.col("cents") / 100).alias("price"))


def _group(orders: Any) -> Any:
    return orders.groupBy("product").agg(F.sum("cents").alias("cents"), F.count("*").alias("orders"))


def _join_and_sum(orders: Any, customers: Any) -> Any:
    return orders.join(customers, "customer").groupBy("country").agg(F.sum("cents").alias("cents"))


def _plain_hadoop(world: World) -> None:
    folder = world.settings.home / f"hadoop-{os.getpid()}"
    engine = LocalEngine(world.settings, folder, world.say)
    scripts = Path(__file__).resolve().parent
    mapper, reducer = (
        quote_command([sys.executable, str(scripts / f"plain_{name}.py")]) for name in ("mapper", "reducer")
    )
    options = {
        "mapreduce.job.name": "plain hashtag count",
        "mapreduce.job.reduces": str(hashtags.JOB.reducers),
        **engine.options(),
        **world.settings.hadoop.conf,
        "mapreduce.output.fileoutputformat.compress": "false",
    }
    command = engine.java(
        "org.apache.hadoop.streaming.HadoopStreaming",
        *(word for name, value in options.items() for word in ("-D", f"{name}={value}")),
        *("-input", str(world.tweets_version.path), "-output", str(world.plain_output)),
        *("-mapper", mapper, "-combiner", reducer, "-reducer", reducer),
    )
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)
    if done.returncode != 0:
        raise JobError(f"The plain streaming job failed with exit code {done.returncode}: {done.stderr[-2000:]}")


def _captured_hadoop(world: World, dic: str, run: str) -> RunResult:
    hashtags.JOB = replace(hashtags.JOB, dic=dic, output=OUTPUT)
    local = world.settings.model_copy(
        update={"hadoop": world.settings.hadoop.model_copy(update={"framework": "local"})}
    )
    return run_job(f"{hashtags.__name__}:JOB", settings=local, run=run, inputs=[world.tweets_version.reference])


def _check_same(world: World, run: str) -> None:
    captured = layout.version_path(world.settings.lake, OUTPUT, run)
    for part in sorted(world.plain_output.glob("part-*")):
        if part.read_bytes() != (captured / part.name).read_bytes():
            raise JobError(f"The two jobs did not write the same: {part} and {captured / part.name} differ.")


CASES: dict[str, Case] = {
    "rdd-narrow": _rdd_case(_narrow),
    "rdd-reduce": _rdd_case(_count_hashtags),
    "dataframe-filter": _frame_case(_filter, lambda world: world.orders_version),
    "dataframe-groupby": _frame_case(_group, lambda world: world.orders_version),
    "dataframe-join-aggregate": _frame_case(
        _join_and_sum, lambda world: world.orders_version, lambda world: world.customers_version
    ),
    "hadoop": Case(lambda world: world.tweets, _plain_hadoop, _captured_hadoop, _check_same),
}


def clean(world: World, run: str = "") -> None:
    """Take the outputs of both away."""
    shutil.rmtree(world.plain_output, ignore_errors=True)
    if run:
        shutil.rmtree(layout.version_path(world.settings.lake, OUTPUT, run), ignore_errors=True)
        shutil.rmtree(world.settings.home / "runs" / run, ignore_errors=True)
