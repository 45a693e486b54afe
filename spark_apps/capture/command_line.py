"""What the command lines of all DICs share: `headwater run DIC` hands them what follows the name."""

import argparse
import sys
from collections.abc import Callable

import msgspec

from provenance_store.errors import HeadwaterError
from provenance_store.lake.layout import resolve
from provenance_store.services.application import tell
from provenance_store.settings import Settings, find_lake, load_settings
from spark_apps.capture.run import RunResult


def make_parser(dic: str, engine: str, *, input_help: str) -> argparse.ArgumentParser:
    """The options that every DIC has."""
    parser = argparse.ArgumentParser(prog=f"headwater run {dic}", description=f"Run {dic} on {engine}, captured.")
    parser.add_argument("--run", required=True, help="the run's id, and the name of the versions it writes")
    parser.add_argument("--input", action="append", help=input_help)
    parser.add_argument("--lake", help="the lake's root (default: the setting lake)")
    parser.add_argument(
        "--policy",
        choices=["fail", "degrade"],
        default="fail",
        help="when provenance cannot be sent: fail the job, or go on and let the account say partial",
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


def run_and_tell(given: argparse.Namespace, run: Callable[[Settings], RunResult]) -> int:
    """Run it in the lake that is given and tell the result; an error of ours is a sentence and exit status 1."""
    try:
        settings = load_settings().model_copy(update={"lake": find_lake(given.lake)})
        result = run(settings)
    except HeadwaterError as error:
        sys.stderr.write(f"Error: {error}\n")
        if given.json:  # whoever reads it can raise what was raised here
            tell(error=str(error), kind=type(error).__name__)
        return 1
    except KeyboardInterrupt:
        return 130
    paths = [str(resolve(settings.lake, output).path) for output in result.outputs]
    sys.stdout.write(_as_json(result, paths) if given.json else _as_sentence(result, paths))
    return 0


def say(sentence: str) -> None:
    """Tell how far it is, beside the result."""
    sys.stderr.write(f"{sentence}\n")


def _as_json(result: RunResult, paths: list[str]) -> str:
    return msgspec.json.encode({**msgspec.to_builtins(result), "paths": paths}).decode() + "\n"


def _as_sentence(result: RunResult, paths: list[str]) -> str:
    lost = "" if result.manifest_sent else "; the manifest could NOT be sent, so its completeness is unknown"
    return (
        f"run {result.run}: {', '.join(paths)} written; {result.messages} messages of "
        f"{result.writers} writers in topic {result.topic}, {result.seconds:.1f} s{lost}\n"
    )
