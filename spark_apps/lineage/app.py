"""A bulk trace as an application: reduced graphs and starts in, tables and a summary out."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from provenance_store.errors import InputError, UnknownRecordError
from provenance_store.export.bulk import (
    EDGES_FILE,
    RECORDS_FILE,
    STARTS_FILE,
    SUMMARY_FILE,
    UNKNOWN_FILE,
    BulkSummary,
)
from provenance_store.export.folders import Found, find_graphs
from provenance_store.model.account import worst_verdict
from provenance_store.services.service import Say
from spark_apps.lineage.lake import UnseenError, read_lake
from spark_apps.lineage.question import BulkQuestion
from spark_apps.lineage.results import Results
from spark_apps.lineage.search import search
from spark_apps.session import expect_edges
from spark_apps.spool import Spool, count_rows, write_table

_TABLES = (RECORDS_FILE, STARTS_FILE, EDGES_FILE)
_UNFINISHED = ".unfinished"
_NAMED = 5


def run(
    spark: SparkSession,
    question: BulkQuestion,
    *,
    starts: Sequence[str],
    reduced: Sequence[Path],
    out: Path,
    say: Say = lambda _: None,
) -> BulkSummary:
    """Answer the question for every start, over the newest graph of every run; the folder `out` then holds the answers.

    An id that no graph has ever seen is an error: `out` names them all.
    """
    began = time.monotonic()
    found = find_graphs(reduced)
    _prepare(out)
    try:
        results = _search(spark, question, starts=starts, found=found, out=out, say=say)
        say("writing what was reached")
        folder = out / _UNFINISHED
        records = write_table(results.records(), folder / RECORDS_FILE)
        write_table(results.starts(records), folder / STARTS_FILE)
        if question.edges:
            write_table(results.edges(), folder / EDGES_FILE)
        runs = results.runs()
        summary = BulkSummary(
            direction=question.direction,
            depth=question.depth,
            to=question.to,
            ends_only=question.ends_only,
            verdict=worst_verdict(one.verdict for one in runs),
            starts=len(starts),
            records=count_rows(folder / RECORDS_FILE),
            edges=count_rows(folder / EDGES_FILE) if question.edges else None,
            runs=runs,
            unfinished=list(map(str, found.unfinished)),
            seconds=round(time.monotonic() - began, 3),
        )
        for table in _TABLES:
            if (folder / table).exists():
                (folder / table).rename(out / table)
    finally:
        shutil.rmtree(out / _UNFINISHED, ignore_errors=True)
    summary.write(out)
    return summary


def _search(
    spark: SparkSession, question: BulkQuestion, *, starts: Sequence[str], found: Found, out: Path, say: Say
) -> Results:
    edges = sum(graph.account.edges_out for graph in found.graphs)
    expect_edges(spark, edges)
    say(f"reading {edges:,} edges of {len(found.graphs):,} runs")
    spool = Spool(spark, out / _UNFINISHED / "spool")
    try:
        lake = read_lake(found.graphs, question.direction, starts, spool)
    except UnseenError as unseen:
        (out / UNKNOWN_FILE).write_text("".join(f"{one}\n" for one in unseen.ids))
        more = f" and {len(unseen.ids) - _NAMED:,} more" if len(unseen.ids) > _NAMED else ""
        raise UnknownRecordError(
            f"No reduced graph has ever seen {', '.join(unseen.ids[:_NAMED])}{more}: check the ids, and whether the "
            f"runs that wrote or read them are among the folders. All of them are in {out / UNKNOWN_FILE}."
        ) from None
    return Results(lake, search(lake, question.depth, spool, say), found.graphs, question, spool)


def _prepare(out: Path) -> None:
    """Empty the folder of an earlier trace; one that holds anything else is left alone."""
    ours = {*_TABLES, SUMMARY_FILE, UNKNOWN_FILE, _UNFINISHED}
    try:
        out.mkdir(parents=True, exist_ok=True)
        if others := sorted(path.name for path in out.iterdir() if path.name not in ours):
            raise InputError(f"{out} holds {others[0]}, which is not of a trace: name another folder, or an empty one.")
        for name in (SUMMARY_FILE, UNKNOWN_FILE):
            (out / name).unlink(missing_ok=True)
        for name in (*_TABLES, _UNFINISHED):
            if (out / name).exists():
                shutil.rmtree(out / name)
    except OSError as error:
        raise InputError(f"{out} cannot be written to: {error.strerror}.") from error
