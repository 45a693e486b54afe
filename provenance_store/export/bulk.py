"""What a bulk trace leaves in its folder: the tables, and the summary that is written last."""

from pathlib import Path

import msgspec

from provenance_store.errors import InputError
from provenance_store.graph.answer import CrossedRun, Direction
from provenance_store.model.account import Verdict
from provenance_store.model.files import write_whole

# start, record, dataset, depth: what was reached from which start.
RECORDS_FILE = "records.parquet"
# start, verdict, records: every start, with the worst verdict of the runs crossed from it.
STARTS_FILE = "starts.parquet"
# output, input, run: the dependencies that were crossed from any start, each once.
EDGES_FILE = "edges.parquet"
SUMMARY_FILE = "summary.json"
# The ids that no graph has ever seen, a line each, where there are any.
UNKNOWN_FILE = "unknown.txt"


class BulkSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk trace by its numbers; `records` counts pairs of a start and a record."""

    direction: Direction
    depth: int | None
    to: str | None
    ends_only: bool
    verdict: Verdict
    starts: int
    records: int
    # None where they were not asked for.
    edges: int | None
    runs: list[CrossedRun]
    # Folders that were left out, because their reduction has not finished.
    unfinished: list[str]
    seconds: float

    def write(self, folder: Path) -> None:
        """Write it in one step: a folder with a summary is a finished trace."""
        write_whole(folder / SUMMARY_FILE, msgspec.json.format(msgspec.json.encode(self)) + b"\n")

    @classmethod
    def read(cls, folder: Path) -> "BulkSummary":
        """The summary of a finished trace."""
        try:
            return msgspec.json.decode((folder / SUMMARY_FILE).read_bytes(), type=cls)
        except FileNotFoundError:
            raise InputError(f"{folder} holds no {SUMMARY_FILE}: it is not a bulk trace, or not finished.") from None
        except msgspec.DecodeError as error:
            raise InputError(f"{folder / SUMMARY_FILE} is not the summary of a trace: {error}") from None
