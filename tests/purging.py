"""Small lakes whose derived versions are made by plain Python, with the graphs that captured runs would have left."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import msgspec
import polars as pl
from pyspark.sql import SparkSession

from provenance_store.graph.queries import LakeGraph
from provenance_store.lake import catalogue, layout, orders, tweets
from provenance_store.lake.contents import all_lines, all_rows
from provenance_store.lake.layout import Version
from provenance_store.lake.records import lines_of
from provenance_store.model.files import write_whole
from provenance_store.model.ids import file_prefix
from provenance_store.purge.apply import Engine, apply
from provenance_store.purge.approval import approve
from provenance_store.purge.certificate import Certificate
from provenance_store.purge.plan import StoredPlan
from provenance_store.purge.planning import make_plan
from provenance_store.purge.selection import select_ids
from provenance_store.reduction import output
from provenance_store.reduction.exact import reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.run import RunResult
from spark_apps.dics import order_report
from spark_apps.dics.hashtag_count import find_hashtags
from tests.reduced import write_reduced

Lines: TypeAlias = dict[str, bytes]  # by id
Row: TypeAlias = dict[str, Any]
_numbers = itertools.count()


def count_hashtags(tweeted: Iterable[bytes]) -> dict[bytes, bytes]:
    """The lines that the first DIC writes, by hashtag."""
    counts = Counter(tag for line in tweeted for tag, _ in find_hashtags(0, line.decode()))
    return {tag.encode(): f"{tag}\t{count}".encode() for tag, count in counts.items()}


def total_categories(counts: Iterable[bytes], categories: Iterable[bytes]) -> dict[bytes, bytes]:
    """The lines that the second DIC writes, by category."""
    count_of = {tag: int(count) for tag, _, count in (line.rpartition(b"\t") for line in counts)}
    totals: Counter[bytes] = Counter()
    for row in map(msgspec.json.decode, categories):
        if row["hashtag"].encode() in count_of:
            totals[row["category"].encode()] += count_of[row["hashtag"].encode()]
    return {category: b"%b\t%d" % (category, total) for category, total in totals.items()}


class PurgedLake:
    """A lake of its own, whose datasets have one version each, of a name of its own: all share a lake graph."""

    template: ClassVar[Path]
    runs: ClassVar[dict[str, str]]

    def __init__(self, base: Settings, folder: Path, graph: LakeGraph) -> None:
        self.number = next(_numbers)
        # Recordings, so that nobody waits for a broker that is not there.
        places = {"lake": folder / f"lake-{self.number}", "recordings": folder / f"recordings-{self.number}"}
        self.settings = base.model_copy(update=places)
        self.graph = graph
        self.folder = folder
        catalogue.extend(self.settings.lake, self.template)

    def move(self, root: Path) -> None:
        """Go on in a copy of the lake elsewhere."""
        there = root / f"lake-{self.number}"
        for file in (path for path in self.settings.lake.rglob("*") if path.is_file()):
            write_whole(there / str(file.relative_to(self.settings.lake)), file.read_bytes())
        self.settings = self.settings.model_copy(update={"lake": there})

    def version(self, dataset: str) -> Version:
        return layout.version_of(self.settings.lake, dataset, f"{self.runs.get(dataset, 'v')}{self.number}")

    def plan(self, selected: Sequence[str]) -> StoredPlan:
        chosen = select_ids(self.settings, selected, by="engineer")
        return make_plan(self.settings, self.graph, chosen.id, by="engineer")

    def purge(self, plan: StoredPlan, engine: Engine) -> Certificate:
        approve(self.settings, self.graph, plan.id, by="officer")
        return apply(self.settings, self.graph, plan.id, engine)


class TwitterLake(PurgedLake):
    """Tweets, what the hashtags are counted to, and the categories' totals."""

    template = Path(tweets.__file__).with_name("tweets.toml")
    runs: ClassVar = {"hashtag_counts": "count-", "category_totals": "total-"}

    def write(self, dataset: str, files: Sequence[Sequence[bytes]], about: Mapping[str, object]) -> Version:
        version = self.version(dataset)
        with layout.new_version(version, about) as folder:
            for number, lines in enumerate(files):
                (folder / f"part-{number:05d}").write_bytes(b"".join(line + b"\n" for line in lines))
        return version

    def read(self, dataset: str) -> Lines:
        return dict(lines_of(self.version(dataset)))

    def make(self, tweeted: Sequence[Sequence[bytes]], categories: Sequence[bytes]) -> None:
        """All three levels, as the DICs would."""
        self.write("tweets", tweeted, {})
        self.write("categories", [categories], {})
        told = self.read("tweets")
        counts = count_hashtags(told.values())
        self._run("hashtag-count", ["tweets"], "hashtag_counts", counts.values())
        inputs = {
            output: [one for one, line in told.items() if count_hashtags([line]).keys() & {_key(made)}]
            for output, made in self.read("hashtag_counts").items()
        }
        self._merge("hashtag-count", "hashtag_counts", inputs)

        rows = self.read("categories")
        counted = self.read("hashtag_counts")
        totals = total_categories(counted.values(), rows.values())
        self._run("category-totals", ["hashtag_counts", "categories"], "category_totals", totals.values())
        of_tag = {_key(line): one for one, line in counted.items()}
        inputs = {output: [] for output in self.read("category_totals")}
        output_of = {_key(line): output for output, line in self.read("category_totals").items()}
        for one, line in rows.items():
            row = msgspec.json.decode(line)
            if row["hashtag"].encode() in of_tag:
                inputs[output_of[row["category"].encode()]] += [one, of_tag[row["hashtag"].encode()]]
        self._merge("category-totals", "category_totals", inputs)

    def _run(self, dic: str, inputs: Sequence[str], output: str, lines: Iterable[bytes]) -> None:
        """A version as a run leaves it: its lines in two files, and a marker that tells what it read."""
        result = RunResult(
            run=self.version(output).name,
            dic=dic,
            topic=f"headwater.{dic}",
            inputs=[self.version(one).reference for one in inputs],
            outputs=[self.version(output).reference],
            generation=1,
            messages=1,
            writers=1,
        )
        ordered = sorted(lines)
        self.write(output, [ordered[::2], ordered[1::2]], msgspec.to_builtins(result))

    def _merge(self, dic: str, output: str, inputs: Mapping[str, Sequence[str]]) -> None:
        edges = [(made, one) for made, ones in inputs.items() for one in ones]
        run = self.version(output).name
        self.graph.merge(write_reduced(self.folder / run, run, edges, dic=dic, generation=1))


def _key(line: bytes) -> bytes:
    return line.rpartition(b"\t")[0]


def report_countries(orders: Iterable[Row], customers: Iterable[Row]) -> dict[Any, Row]:
    """The rows of `country_totals`, by their keys."""
    totals: dict[str, list[Row]] = {}
    for order, country in _sold(orders, customers):
        totals.setdefault(country, []).append(order)
    return {
        (country,): {
            "country": country,
            "orders": len(sold),
            "customers": len({order["customer_id"] for order in sold}),
            "cents": sum(order["cents"] for order in sold),
        }
        for country, sold in totals.items()
    }


def report_top(orders: Iterable[Row], customers: Iterable[Row]) -> dict[Any, Row]:
    """The rows of `top_orders`, by their keys."""
    totals: dict[str, list[Row]] = {}
    for order, country in _sold(orders, customers):
        totals.setdefault(country, []).append(order)
    return {
        (country, place): {
            "country": country,
            "place": place,
            "order_id": order["order_id"],
            "cents": order["cents"],
        }
        for country, sold in totals.items()
        for place, order in enumerate(sorted(sold, key=lambda one: (-one["cents"], one["order_id"]))[:3], start=1)
    }


def _sold(orders: Iterable[Row], customers: Iterable[Row]) -> Iterator[tuple[Row, str]]:
    countries = {one["customer_id"]: one["country"] for one in customers if one["confirmed"]}
    for order in orders:
        if order["status"] != "cancelled" and order["customer_id"] in countries:
            yield order, countries[order["customer_id"]]


class OrdersLake(PurgedLake):
    """Orders and customers, and the report over them: run on Spark, captured, reduced and merged."""

    template = Path(orders.__file__).with_name("orders.toml")
    runs: ClassVar = {"country_totals": "report-", "top_orders": "report-"}

    def make(self, sold: Sequence[pl.DataFrame], customers: pl.DataFrame, spark: SparkSession) -> None:
        """Both inputs, and what the DIC makes of them."""
        for dataset, frames in (("orders", sold), ("customers", [customers])):
            with layout.new_version(self.version(dataset), {}) as folder:
                for number, frame in enumerate(frames):
                    frame.write_parquet(folder / f"part-{number:05d}.parquet")
        run = self.version("top_orders").name
        inputs = [self.version(dataset).reference for dataset in ("orders", "customers")]
        order_report.JOB.execute(self.settings, spark, run=run, inputs=inputs)
        reduced = reduce_messages(RecordingSource(self.settings.recordings / "headwater.order-report"))
        for folder in output.write(self.folder / f"reduced-{self.number}", reduced):
            self.graph.merge(folder)

    def rows(self, dataset: str) -> dict[str, Row]:
        """The records, by id."""
        version, found = self.version(dataset), {}
        for path in version.files():
            file = version.name_of(path)
            if path.suffix == ".parquet":
                parts = [(positions, batch.to_pylist()) for positions, batch in all_rows(version, file)]
            else:
                parts = [(places, list(map(msgspec.json.decode, lines))) for places, lines in all_lines(version, file)]
            for positions, records in parts:
                prefix = file_prefix(version.dataset, version.name, file)
                found |= {f"{prefix}{at}": record for at, record in zip(positions.tolist(), records, strict=True)}
        return found
