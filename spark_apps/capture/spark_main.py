"""The command line of a Spark DIC: `sys.exit(main(JOB))`."""

from collections.abc import Sequence

from provenance_store.settings import Settings
from spark_apps.capture.command_line import make_parser, run_and_tell, say
from spark_apps.capture.jar import capture_jars
from spark_apps.capture.run import RunResult
from spark_apps.capture.spark_job import SparkJob
from spark_apps.session import open_session


def main(job: SparkJob, arguments: Sequence[str] | None = None) -> int:
    """Run the DIC as the arguments say; the exit status."""
    wanted = f"dataset or dataset/version, one each for {', '.join(job.inputs)}, in this order (default: the newest)"
    given = make_parser(job.dic, "Spark", input_help=wanted).parse_args(arguments)

    def execute(settings: Settings) -> RunResult:
        session = open_session(settings, f"headwater {job.dic} {given.run}", capture_jars(settings, say))
        try:
            return job.execute(settings, session, run=given.run, inputs=given.input, policy=given.policy, say=say)
        finally:
            session.stop()

    return run_and_tell(given, execute)
