"""Record ids: `lake:<dataset>/<version>/<file>#<position>` or `lake:<dataset>/<version>#<key>`.

Every part is percent-encoded byte by byte, so an id is ASCII, never ambiguous, and gives its parts back exactly,
whatever bytes a file name holds. A key that may be personal is stored as `hmac:<hex>`; a plain key never looks like
that, because its own colons are encoded.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

from provenance_store.errors import IdError

LAKE_PREFIX = "lake:"
LAKE_NAMESPACE = "urn:lake:"
RUN_PREFIX = "run:"

_HASHED = re.compile(r"hmac:[0-9a-f]{64}")
_POSITION = re.compile(r"0|[1-9][0-9]*")
# `=` stays readable for the partition folders of a lake (`day=2026-01-02`); it separates nothing in an id.
_SAFE = "="
_VERSION = re.compile(r"lake:[^/#]+/[^/#]+")
_IN_VERSION = re.compile(r"(lake:[^/#]+/[^/#]+)[/#]")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def run_namespace(run: str) -> str:
    """What the prefix `run` stands for in the documents of a run."""
    return f"urn:run:{run}:"


def check_run(run: str) -> str:
    """The run id, if it can name a folder, a version and a namespace everywhere."""
    if not _RUN.fullmatch(run):
        raise IdError(
            f"{run!r} cannot be a run id: use 1 to 128 letters, digits, '.', '_' or '-', the first a letter or digit."
        )
    return run


def key_text(*components: str) -> str:
    """A declared key as it stands in an id: its components encoded, with commas between."""
    if not components:
        raise IdError("a key needs at least one component.")
    return ",".join(map(_quote, components))


def hash_key(*components: str, secret: bytes) -> str:
    """The keyed hash under which a key that may be personal appears in an id."""
    return "hmac:" + hmac.new(secret, key_text(*components).encode("ascii"), hashlib.sha256).hexdigest()


def file_prefix(dataset: str, version: str, file: str) -> str:
    """All of a positional id but the position: what a reader of one file computes once."""
    if not file or any(part in {"", ".", ".."} for part in file.split("/")):
        raise IdError(f"{file!r} cannot be a file of a version: give its path relative to the version's folder.")
    return f"{version_prefix(dataset, version)}/{'/'.join(map(_quote, file.split('/')))}#"


def version_prefix(dataset: str, version: str) -> str:
    """The id of a dataset's version, which every id of its records begins with."""
    if not dataset or not version:
        raise IdError(f"dataset {dataset!r} and version {version!r} must both be given.")
    if "/" in dataset or "/" in version:
        raise IdError(f"dataset {dataset!r} and version {version!r} must not hold a '/'.")
    return f"{LAKE_PREFIX}{_quote(dataset)}/{_quote(version)}"


def dataset_of(record: str) -> str:
    """The dataset of any `lake:` id, also of one whose remainder someone else made up."""
    if not record.startswith(LAKE_PREFIX):
        raise IdError(f"{record!r} is not a lake record: its id would begin with 'lake:'.")
    dataset = _unquote(re.split("[/#]", record[len(LAKE_PREFIX) :], maxsplit=1)[0])
    if not dataset:
        raise IdError(f"{record!r} names no dataset: an id is lake:<dataset>/<version>/<file>#<position>.")
    return dataset


def version_id_of(record: str) -> str | None:
    """The id of the version that a record is in; None for an id that is itself no record of a version."""
    within = _IN_VERSION.match(record)
    return within[1] if within else None


def is_version_id(text: str) -> bool:
    """Whether an id names a whole version, as declared jobs do."""
    return _VERSION.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class RecordId:
    """A record's id in its parts: a file with a position, or the components of a declared key."""

    dataset: str
    version: str
    file: str | None = None
    position: int | None = None
    key: tuple[str, ...] | None = None
    hashed_key: str | None = None

    def __post_init__(self) -> None:
        version_prefix(self.dataset, self.version)
        positional = self.file is not None and self.position is not None
        partial = (self.file is None) != (self.position is None)
        if partial or [positional, self.key is not None, self.hashed_key is not None].count(True) != 1:
            raise IdError("an id has a file with a position, or a key, or a hashed key: exactly one of the three.")
        if self.file is not None:
            file_prefix(self.dataset, self.version, self.file)
        if self.position is not None and self.position < 0:
            raise IdError(f"position {self.position} is negative.")
        if self.key is not None:
            key_text(*self.key)
        if self.hashed_key is not None and not _HASHED.fullmatch(self.hashed_key):
            raise IdError("a hashed key is 'hmac:' and 64 hexadecimal digits, as hash_key makes it.")

    def __str__(self) -> str:
        if self.file is not None:
            return f"{file_prefix(self.dataset, self.version, self.file)}{self.position}"
        key = self.hashed_key or key_text(*(self.key or ()))
        return f"{version_prefix(self.dataset, self.version)}#{key}"

    @classmethod
    def parse(cls, text: str) -> "RecordId":
        """The parts of an id in canonical form; anything else is an IdError that says what is wrong."""
        if not text.startswith(LAKE_PREFIX):
            raise IdError(f"{text!r} is not a lake record: its id would begin with 'lake:'.")
        place, hash_sign, last = text[len(LAKE_PREFIX) :].partition("#")
        parts = place.split("/")
        if not hash_sign or len(parts) < 2:  # noqa: PLR2004 - dataset and version
            raise IdError(
                f"{text!r} is not a whole record id: lake:<dataset>/<version>/<file>#<position> or "
                "lake:<dataset>/<version>#<key>."
            )
        dataset, version, *file = map(_unquote, parts)
        if file:
            if not _POSITION.fullmatch(last):
                raise IdError(f"{text!r} ends in {last!r}, which is not a position: a number without leading zeros.")
            parsed = cls(dataset, version, file="/".join(file), position=int(last))
        elif _HASHED.fullmatch(last):
            parsed = cls(dataset, version, hashed_key=last)
        else:
            parsed = cls(dataset, version, key=tuple(map(_unquote, last.split(","))))
        if str(parsed) != text:
            raise IdError(f"{text!r} is not in canonical form; the same record is written {str(parsed)!r}.")
        return parsed


def _encode_text(text: str) -> bytes:
    # File names are bytes: os.fsdecode turns what is not UTF-8 into lone surrogates, and this turns them back.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise IdError(f"{text!r} holds a character that no file name or key can hold: {error.reason}.") from None


def _quote(part: str) -> str:
    return quote_from_bytes(_encode_text(part), safe=_SAFE)


def _unquote(part: str) -> str:
    return unquote_to_bytes(part).decode("utf-8", "surrogateescape") if "%" in part else part
