"""`python -m spark_apps.reducer --topic T --out DIR [--run ID] [--wait SECONDS]`.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"finished": FOLDER}` for each
folder written, or `{"error": …, "kind": …}`.
"""

import argparse
import json
import sys
from pathlib import Path

from provenance_store.errors import HeadwaterError
from provenance_store.services import jvm
from provenance_store.settings import load_settings
from spark_apps.reducer.app import run
from spark_apps.session import open_session

# A message is up to 900 kB, and a batch of them must fit in a worker's memory.
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MESSAGES_A_BATCH = 500


def main(arguments: list[str] | None = None) -> int:
    """Reduce one topic; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.reducer")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--run")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for what a manifest counts")
    chosen = parser.parse_args(arguments)
    try:
        settings = load_settings()
        _say("starting Spark")
        jars = sorted(jvm.fetch(settings, "spark", _say).glob("*.jar"))
        spark = open_session(settings, "headwater-reduce", jars, {_BATCH: str(_MESSAGES_A_BATCH)})
        try:
            _say(f"reading topic {chosen.topic}")
            folders = run(
                spark, settings, topic=chosen.topic, out=chosen.out, only=chosen.run, wait=chosen.wait, say=_say
            )
        finally:
            spark.stop()
    except HeadwaterError as error:
        _tell(error=str(error), kind=type(error).__name__)
        return 1
    for folder in folders:
        _tell(finished=str(folder))
    return 0


def _say(progress: str) -> None:
    _tell(progress=progress)


def _tell(**line: str) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
