"""What is known of each dataset, as a person tells it in `<lake>/catalogue.toml`: docs/catalogue.md shows one.

A dataset has a format, a key by which a record is recognised again, columns that hold personal data, and a policy: what
a purge does with its records. A dataset that the catalogue does not name is undeclared, and nothing is assumed of it.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.model.files import write_whole
from provenance_store.storage.paths import RemotePath

FILE = "catalogue.toml"
# The only column of lines that are not divided, as Spark calls it.
LINE = "value"
_PREAMBLE = "# What Headwater knows of the datasets of this lake: see docs/catalogue.md.\n"
_COMMA = ","
_PLACE = re.compile(r"(.*?)(?: - at `\$\.?(.*?)`)?", re.DOTALL)
_WORDS = {
    "Object missing required field": "it lacks the field",
    "Object contains unknown field": "there is no field",
    "`object`": "a table",
}
_ALLOWED = {
    "format": " Use parquet, jsonl, csv or text.",
    "policy": ' Write one as { do = "delete" }; or redact, recompute, hold.',
    "policy.do": " Use delete, redact, recompute or hold.",
}
_TABLE = re.compile(r"^(?=\[)", re.MULTILINE)

Format: TypeAlias = Literal["parquet", "jsonl", "csv", "text"]
Value: TypeAlias = str | int | float | bool


class _Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    pass


class Delete(_Told, frozen=True, tag="delete"):
    """Records are taken out."""


class Redact(_Told, frozen=True, tag="redact"):
    """Records stay, and fields of theirs are emptied or replaced. TOML knows no null, hence the two lists."""

    null: tuple[str, ...] = ()
    replace: dict[str, Value] = {}

    def __post_init__(self) -> None:
        both = [field for field in self.null if field in self.replace]
        if both:
            raise InputError(f"{both[0]!r} is both in null and in replace: choose one.")
        if not self.fields:
            raise InputError("redact names no field: list some in null, or in replace with their new values.")

    @property
    def fields(self) -> dict[str, Value | None]:
        """What each field becomes."""
        return {**dict.fromkeys(self.null), **self.replace}


class Recompute(_Told, frozen=True, tag="recompute"):
    """Records are made anew from what is left of their inputs, by the DIC that made them.

    `decided_by` names, for an input dataset, the columns that decide which output a record goes to. Where a record of
    the input changes in others alone, the outputs that it went to are all that change; where nothing is told, any
    output might, and the whole version is made anew.

    `sums` names the columns to which every input record adds by itself, whole numbers that are all zero only where no
    input is left. Then what deleted inputs added is taken away, and nothing else has to be read.
    """

    decided_by: dict[str, tuple[str, ...]] = {}
    sums: tuple[str, ...] = ()


class Hold(_Told, frozen=True, tag="hold"):
    """Nothing may be changed: a purge that reaches such a record is refused, and says who holds it and why."""

    who: str
    why: str

    def __post_init__(self) -> None:
        if not (self.who.strip() and self.why.strip()):
            raise InputError("hold needs who holds the records, and why.")


Policy: TypeAlias = Delete | Redact | Recompute | Hold


class Dataset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is told of one dataset."""

    format: Format
    policy: Policy
    columns: tuple[str, ...] = ()
    separator: str | None = None
    key: tuple[str, ...] = ()
    personal: tuple[str, ...] = ()
    suite: str | None = None

    def __post_init__(self) -> None:
        for field, reason in self._contradictions():
            raise InputError(f"field {field}: {reason}")

    @property
    def divides_at(self) -> str | None:
        """What parts the columns of its lines; None where lines are not divided, or the files are not of lines."""
        return _COMMA if self.format == "csv" and self.separator is None else self.separator

    @property
    def known_columns(self) -> tuple[str, ...] | None:
        """All its columns; None where only the files tell them."""
        if self.format in {"parquet", "jsonl"}:
            return None
        return self.columns or (LINE,)

    @property
    def named_columns(self) -> dict[str, list[str]]:
        """The columns that are spoken of, under the fields that speak of them."""
        redacted = list(self.policy.fields) if isinstance(self.policy, Redact) else []
        return {"key": list(self.key), "personal": list(self.personal), "policy": redacted or list(self.sums)}

    @property
    def sums(self) -> tuple[str, ...]:
        """The columns from which what deleted inputs added can be taken away."""
        return self.policy.sums if isinstance(self.policy, Recompute) else ()

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        if self.known_columns is None and (self.columns or self.separator is not None):
            yield (
                "columns" if self.columns else "separator",
                f"the files of format {self.format} tell their own columns.",
            )
        if self.format == "csv" and not self.columns:
            yield "columns", "name the columns of CSV, as its files have no header."
        if self.format == "text" and bool(self.columns) != (self.separator is not None):
            yield "separator", "lines of text are divided if both columns and separator are given, or neither."
        if self.separator is not None and (len(self.separator.encode()) != 1 or self.separator in '\n"'):
            yield "separator", "it must be one ASCII character, and neither a line break nor a quotation mark."
        if self.sums and (self.format != "text" or sorted([*self.key, *self.sums]) != sorted(self.columns)):
            yield "policy", "sums are for divided lines of text, whose columns are each in key or in sums."
        for field, columns in {"columns": list(self.columns), **self.named_columns}.items():
            for column in columns:
                if columns.count(column) > 1:
                    yield field, f"{column!r} is named twice."
                if self.known_columns is not None and column not in self.known_columns:
                    yield field, f"there is no column {column!r}; there are {', '.join(self.known_columns)}."


class Catalogue(msgspec.Struct, frozen=True):
    """The datasets that the catalogue of a lake names."""

    path: Path
    datasets: dict[str, Dataset]

    @classmethod
    def load(cls, root: Path) -> "Catalogue":
        """The catalogue of a lake; it names nothing where there is no such file."""
        path = root / FILE
        try:
            told = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls(path, {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not TOML: {error}.") from None
        return cls(path, {name: _read(path, name, entry) for name, entry in told.items()})

    def of(self, dataset: str) -> Dataset:
        """What is told of a dataset; InputError where nothing is."""
        if dataset not in self.datasets:
            raise InputError(f"Dataset {dataset!r} is not in {self.path}: tell its format and policy there.")
        return self.datasets[dataset]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset of the lake or of its catalogue, or of both; `told` is None for one that is undeclared."""

    dataset: str
    told: Dataset | None
    versions: list[str]


def list_all(root: Path) -> list[Listed]:
    """Every dataset that is in the lake or in its catalogue, by name."""
    told = Catalogue.load(root).datasets
    names = sorted({*told, *layout.list_datasets(root)})
    return [
        Listed(dataset=name, told=told.get(name), versions=[one.name for one in layout.list_versions(root, name)])
        for name in names
    ]


def extend(root: Path, template: Path) -> None:
    """Add to the catalogue those datasets of a template that it does not name; what is there stays as it is.

    Suites that it names and that lie beside the template are put beside the catalogue, where there is none.
    """
    known = Catalogue.load(root)
    _, *tables = _TABLE.split(template.read_text(encoding="utf-8"))
    told = {name: entry for table in tables for name, entry in tomllib.loads(table).items()}
    for name, entry in told.items():
        if name not in known.datasets or known.datasets[name].suite == entry.get("suite"):
            _put_suite(root, template.parent, entry.get("suite"))
    missing = [table.strip() for table in tables if not tomllib.loads(table).keys() <= known.datasets.keys()]
    if not missing:
        return
    added = [f"\n{table}\n" for table in missing]
    if isinstance(root, RemotePath):
        told_before = known.path.read_text(encoding="utf-8") if known.path.exists() else _PREAMBLE
        write_whole(known.path, "".join([told_before, *added]).encode())
        return
    root.mkdir(parents=True, exist_ok=True)
    with known.path.open("a", encoding="utf-8", newline="\n") as file:
        # Appended at once, so that nothing that a person wrote meanwhile is lost.
        file.write("".join(["" if file.tell() else _PREAMBLE, *added]))


def _put_suite(root: Path, beside: Path, suite: str | None) -> None:
    if suite is not None and not (root / suite).exists():
        (root / suite).parent.mkdir(parents=True, exist_ok=True)
        write_whole(root / suite, (beside / suite).read_bytes())


def _read(path: Path, name: str, told: Any) -> Dataset:
    try:
        layout.check_name(name, "dataset")
        return msgspec.convert(told, Dataset)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}, dataset {name!r}{_as_sentence(str(error))}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _as_sentence(said: str) -> str:
    """What msgspec found wrong, in the words of the catalogue."""
    found = _PLACE.fullmatch(said)
    reason, field = (found[1], found[2]) if found else (said, None)
    for word, ours in _WORDS.items():
        reason = reason.replace(word, ours)
    place = f", field {field}" if field else ""
    return f"{place}: {reason.rstrip('.')}.{_ALLOWED.get(field or '', '')}"
