"""The command line of a Hadoop DIC: `sys.exit(main("my_module:JOB", default_input="tweets"))`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from provenance_store.errors import HeadwaterError
from provenance_store.lake.layout import version_path
from provenance_store.settings import load_settings
from spark_apps.capture.hadoop import RunResult, run_job
from spark_apps.capture.hadoop_job import load_job


def main(reference: str, *, default_input: str, arguments: Sequence[str] | None = None) -> int:
    """Run the job as the arguments say; an error of ours is a sentence and exit code 1."""
    try:
        job = load_job(reference)
        given = _parser(job.dic, default_input).parse_args(arguments)
        settings = load_settings()
        if given.lake is not None:
            settings = settings.model_copy(update={"lake": given.lake})
        result = run_job(
            reference,
            settings=settings,
            run=given.run,
            inputs=given.input or [default_input],
            policy=given.policy,
            reducers=given.reducers,
            python=given.python,
            say=_say,
        )
        path = version_path(settings.lake, job.output, given.run)
        sys.stdout.write(_as_json(result, path) if given.json else _as_sentence(result, path))
    except HeadwaterError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser(dic: str, default_input: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"headwater run {dic}", description=f"Run {dic} on Hadoop, captured.")
    parser.add_argument("--run", required=True, help="the run's id, and the name of the version it writes")
    parser.add_argument(
        "--input", action="append", help=f"dataset or dataset/version, may be repeated (default: {default_input})"
    )
    parser.add_argument("--lake", type=Path, help="the lake's root (default: the setting lake)")
    parser.add_argument("--reducers", type=int, help="how many reducers, and so how many parts of the output")
    parser.add_argument(
        "--policy",
        choices=["fail", "degrade"],
        default="fail",
        help="when provenance cannot be sent: fail the job, or go on and let the account say partial",
    )
    parser.add_argument("--python", default=sys.executable, help="the workers' interpreter")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


def _as_json(result: RunResult, path: Path) -> str:
    return msgspec.json.encode({**msgspec.to_builtins(result), "path": str(path)}).decode() + "\n"


def _as_sentence(result: RunResult, path: Path) -> str:
    lost = "" if result.manifest_sent else "; the manifest could NOT be sent, so its completeness is unknown"
    return (
        f"run {result.run}: {', '.join(result.outputs)} written to {path}; {result.messages} messages of "
        f"{result.writers} writers in topic {result.topic}, {result.seconds:.1f} s{lost}\n"
    )
