"""`python -m spark_apps.purge PLAN`: follow an approved plan.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"certificate": NUMBER}`, or
`{"error": …, "kind": …}`.
"""

import argparse
import sys
from contextlib import ExitStack
from functools import cache

from pyspark.sql import SparkSession

from provenance_store.graph.queries import LakeGraph
from provenance_store.purge.apply import apply
from provenance_store.services.application import tell, tell_failure, tell_progress
from provenance_store.settings import load_settings
from spark_apps.capture.jar import capture_jars
from spark_apps.purge.engine import SparkEngine
from spark_apps.session import open_session


def main(arguments: list[str] | None = None) -> int:
    """Apply a plan; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.purge")
    parser.add_argument("plan")
    chosen = parser.parse_args(arguments)
    return tell_failure(lambda: _apply(chosen.plan))


def _apply(plan: str) -> None:
    settings = load_settings()
    with ExitStack() as opened:

        @cache
        def start_spark() -> SparkSession:
            tell_progress("starting Spark")
            session = open_session(settings, f"headwater purge {plan}", capture_jars(settings, tell_progress))
            opened.callback(session.stop)
            return session

        graph = opened.enter_context(LakeGraph(settings))
        certificate = apply(settings, graph, plan, SparkEngine(start_spark), tell_progress)
        tell(certificate=certificate.number)


if __name__ == "__main__":
    sys.exit(main())
