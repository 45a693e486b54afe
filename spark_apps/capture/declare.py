"""Jobs that are not instrumented, declared: which versions they read and which they wrote.

What is known is a dependency between whole versions. It is sent like any provenance, with ids that name a version
(`lake:<dataset>/<version>`), and its manifest is marked `declared`: the run's verdict, and that of every answer which
crosses it, is `unknown`.
"""

import argparse
import sys
from collections.abc import Sequence

from provenance_store.errors import HeadwaterError, InputError
from provenance_store.lake import layout
from provenance_store.model.document import write_document
from provenance_store.model.ids import version_prefix
from provenance_store.model.message import DECLARED, Headers, Manifest, Message
from provenance_store.settings import Settings, load_settings
from provenance_store.transport.wiring import open_transport
from spark_apps.capture.run import Run

_ATTEMPT = "declared"


def declare(settings: Settings, *, dic: str, run: str, inputs: Sequence[str], outputs: Sequence[str]) -> Manifest:
    """Tell that a job made these versions from those; declaring a run again replaces what was declared before."""
    if not inputs or not outputs:
        raise InputError("A declared job needs at least one input and one output, each as dataset/version.")
    read, made = (_versions(settings, references) for references in (inputs, outputs))
    context = Run(settings, dic=dic, run=run)
    # Each declaration is a writer of its own, so that of two under one run id only the last one counts.
    headers = Headers(run, dic, f"{_ATTEMPT}-{context.next_generation()}", 0, task=_ATTEMPT, function=_ATTEMPT)
    edges = [("wasDerivedFrom", output, source) for output in made for source in read]
    sink = open_transport(settings).sink(context.topic)
    sink.send(Message.of(headers, write_document(run, edges)))  # type: ignore[arg-type]
    sink.close().check()
    manifest, _ = context.send_manifest(lambda _: {headers.attempt: 1}, marks=[DECLARED])
    return manifest


def _versions(settings: Settings, references: Sequence[str]) -> list[str]:
    for reference in references:
        if "/" not in reference:
            raise InputError(f"{reference!r} names a dataset; a declaration is about a version: dataset/version.")
    found = [layout.resolve(settings.lake, reference) for reference in references]
    return [version_prefix(version.dataset, version.name) for version in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """`headwater declare`; an error of ours is a sentence and exit code 1."""
    parser = argparse.ArgumentParser(prog="headwater declare", description="Declare a job that is not instrumented.")
    parser.add_argument("--dic", required=True, help="the job's name")
    parser.add_argument("--run", required=True, help="the run's id")
    parser.add_argument("--input", action="append", default=[], help="a version it read: dataset/version")
    parser.add_argument("--output", action="append", default=[], help="a version it wrote: dataset/version")
    given = parser.parse_args(arguments)
    try:
        declare(load_settings(), dic=given.dic, run=given.run, inputs=given.input, outputs=given.output)
    except HeadwaterError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    sys.stdout.write(f"run {given.run}: declared in topic headwater.{given.dic}; reduce and merge it like any other\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
