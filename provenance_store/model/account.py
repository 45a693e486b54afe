"""The account of completeness that every reduced graph carries."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from provenance_store.errors import InputError
from provenance_store.model.files import write_whole

Verdict: TypeAlias = Literal["complete", "partial", "unknown"]
ACCOUNT_FILE = "account.json"
# From the best to the worst: something known to be missing is worse than nothing known.
_ORDER: tuple[Verdict, ...] = ("complete", "unknown", "partial")


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, what was left out and why, and whether the graph is all there is."""

    run: str
    dic: str
    verdict: Verdict
    messages: int
    bytes: int
    edges_in: int
    edges_local: int
    edges_out: int
    duplicates: int
    discarded: int
    rejected: int
    missing: dict[str, list[int]]
    seconds: float
    generation: int = 0
    marks: list[str] = []
    # Items that were used although nobody told what made them, in a run that names records: data that is missing.
    unmade: int = 0

    def write(self, folder: Path) -> None:
        """Write `account.json`, last of all and in one step: a folder with an account is a finished reduction."""
        write_whole(folder / ACCOUNT_FILE, msgspec.json.format(msgspec.json.encode(self)) + b"\n")

    @classmethod
    def read(cls, folder: Path) -> "Account":
        """The account of a reduced graph."""
        path = folder / ACCOUNT_FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            raise InputError(
                f"{folder} holds no {ACCOUNT_FILE}: it is not a reduced graph, or its reduction has not finished. "
                "Run `headwater reduce` first."
            ) from None
        except msgspec.DecodeError as error:
            raise InputError(f"{path} is not an account: {error}") from None


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of an answer that crossed several runs."""
    return max(verdicts, key=_ORDER.index, default="complete")
