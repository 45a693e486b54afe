"""The command line of a Hadoop DIC: `sys.exit(main("my_module:JOB", default_input="tweets"))`."""

import sys
from collections.abc import Sequence

from spark_apps.capture.command_line import make_parser, run_and_tell, say
from spark_apps.capture.hadoop import run_job
from spark_apps.capture.hadoop_job import load_job


def main(reference: str, *, default_input: str, arguments: Sequence[str] | None = None) -> int:
    """Run the job as the arguments say; the exit status."""
    wanted = f"dataset or dataset/version, may be repeated (default: {default_input})"
    parser = make_parser(load_job(reference).dic, "Hadoop", input_help=wanted)
    parser.add_argument("--reducers", type=int, help="how many reducers, and so how many parts of the output")
    parser.add_argument("--python", default=sys.executable, help="the workers' interpreter")
    given = parser.parse_args(arguments)
    return run_and_tell(
        given,
        lambda settings: run_job(
            reference,
            settings=settings,
            run=given.run,
            inputs=given.input or [default_input],
            policy=given.policy,
            reducers=given.reducers,
            python=given.python,
            say=say,
        ),
    )
