"""`python -m spark_apps.streams --query FILE --run ID [--batch N] [--capture] [--follow] …`: a stream query, on Spark.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"version": FOLDER}` for each
version that was made, `{"assertions": FOLDER}`, or `{"error": …, "kind": …}`. Without `--follow` it reads what there is
and finishes the run. With it, it goes on until it is sent SIGTERM or SIGINT, and the run can be taken up again.
"""

import argparse
import sys
from pathlib import Path

from provenance_store.errors import InputError, JobError
from provenance_store.lake.layout import refuse_remote
from provenance_store.model.files import in_turn
from provenance_store.services import jvm
from provenance_store.services.application import Stop, tell, tell_failure, tell_progress
from provenance_store.settings import Settings, load_settings
from provenance_store.streams.folders import Workshop, read_facts, run_folder
from provenance_store.streams.query import StreamQuery, functions_of
from spark_apps.session import open_session
from spark_apps.streams.job import StreamJob


def main(arguments: list[str] | None = None) -> int:
    """Run one query; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.streams")
    parser.add_argument("--query", required=True, type=Path, help="the description, as JSON")
    parser.add_argument("--run", required=True)
    parser.add_argument("--batch", type=int, help="the most messages of a topic, and files, in a batch")
    parser.add_argument("--capture", action="store_true", help="record every event's parents too")
    parser.add_argument("--follow", action="store_true", help="go on until stopped, and do not finish the run")
    parser.add_argument("--period", type=int, help="publish results in segments of so many milliseconds")
    parser.add_argument("--live", choices=["exact", "reach"], help="send live provenance; how expiry is told")
    chosen = parser.parse_args(arguments)
    return tell_failure(lambda: _run(chosen))


def _run(chosen: argparse.Namespace) -> None:
    settings = load_settings()
    refuse_remote(settings.lake)
    query = StreamQuery.read(chosen.query)
    facts = read_facts(settings.lake, chosen.run)
    if facts and facts.is_finished and not Workshop(settings.home, chosen.run, query).folder.exists():
        raise InputError(f"Run {chosen.run!r} is finished: give a new one another id.")
    functions_of(query)  # one that is not there is told before Spark is started
    try:
        # Whoever started one before may have gone, and it goes on: two would write the same files.
        with in_turn(settings.home.absolute() / "streams" / f".{chosen.run}.lock", wait=False):
            _execute(chosen, settings, query)
    except BlockingIOError:
        raise JobError(f"Run {chosen.run!r} is executed already: end that, or wait for its end.") from None


def _execute(chosen: argparse.Namespace, settings: Settings, query: StreamQuery) -> None:
    tell_progress("starting Spark")
    jars = sorted(jvm.fetch(settings, "spark", tell_progress).glob("*.jar"))
    spark = open_session(settings, "headwater-streams", jars)
    try:
        job = StreamJob(
            spark,
            settings,
            query,
            chosen.run,
            capture=chosen.capture,
            batch=chosen.batch,
            period=chosen.period,
            live=chosen.live,
        )
        tell_progress(f"running {query.name}")
        if chosen.follow:
            job.follow(Stop())
            return
        job.catch_up()
        for path in [path for paths in job.finish().values() for path in paths]:
            tell(version=str(path))
        tell(assertions=str(run_folder(settings.lake, chosen.run)))
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
