"""The command line of a Spark DIC: `sys.exit(main("my-dic", run, inputs=["orders"], outputs=["totals"]))`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from provenance_store.errors import HeadwaterError
from provenance_store.settings import load_settings
from spark_apps.capture.jar import capture_jars
from spark_apps.capture.run import RunResult
from spark_apps.capture.spark_run import SparkRun, run_spark
from spark_apps.session import open_session


def main(
    dic: str,
    run: Callable[[SparkRun, list[str]], None],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the DIC as the arguments say; an error of ours is a sentence and exit code 1."""
    given = _parser(dic, inputs).parse_args(arguments)
    try:
        if given.input and len(given.input) != len(inputs):
            sys.stderr.write(f"Error: {dic} reads {len(inputs)} inputs, in the order {', '.join(inputs)}.\n")
            return 1
        settings = load_settings()
        if given.lake is not None:
            settings = settings.model_copy(update={"lake": given.lake})
        session = open_session(settings, f"headwater {dic} {given.run}", capture_jars(settings, _say))
        try:
            result = run_spark(
                dic,
                lambda captured: run(captured, given.input or list(inputs)),
                settings=settings,
                session=session,
                run=given.run,
                outputs=outputs,
                policy=given.policy,
                say=_say,
            )
        finally:
            session.stop()
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n" if given.json else _as_sentence(result))
    except HeadwaterError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser(dic: str, inputs: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"headwater run {dic}", description=f"Run {dic} on Spark, captured.")
    parser.add_argument("--run", required=True, help="the run's id, and the name of the versions it writes")
    parser.add_argument(
        "--input",
        action="append",
        help=f"dataset or dataset/version, one each for {', '.join(inputs)}, in this order (default: the newest)",
    )
    parser.add_argument("--lake", type=Path, help="the lake's root (default: the setting lake)")
    parser.add_argument(
        "--policy",
        choices=["fail", "degrade"],
        default="fail",
        help="when provenance cannot be sent: fail the job, or go on and let the account say partial",
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


def _as_sentence(result: RunResult) -> str:
    lost = "" if result.manifest_sent else "; the manifest could NOT be sent, so its completeness is unknown"
    return (
        f"run {result.run}: {', '.join(result.outputs)} written; {result.messages} messages of "
        f"{result.writers} writers in topic {result.topic}, {result.seconds:.1f} s{lost}\n"
    )
