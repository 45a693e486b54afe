"""Where the records stand that ids name."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset
from provenance_store.lake.columns import Key, keys_of
from provenance_store.lake.contents import all_lines, all_rows, existing
from provenance_store.lake.layout import Version
from provenance_store.lake.places import Positions
from provenance_store.model.ids import RecordId, hash_key, key_text, version_prefix
from provenance_store.model.keys import KeyRing


def locate(
    version: Version, told: Dataset, ids: Iterable[str], keys: KeyRing
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """The positions of records of a version, file by file, and those ids under which nothing stands."""
    by_file: dict[str, dict[int, str]] = defaultdict(dict)
    by_key: dict[str, str] = {}
    for record in set(ids):
        parts = RecordId.parse(record)
        if (parts.dataset, parts.version) != (version.dataset, version.name):
            raise InputError(f"{record} is not of {version.reference}.")
        if parts.file is not None and parts.position is not None:
            by_file[parts.file][parts.position] = record
        else:
            by_key[record.partition("#")[2]] = record
    found = _by_position(version, told, by_file)
    for file, records in (_by_key(version, told, by_key, keys) if by_key else {}).items():
        found.setdefault(file, {}).update(records)
    there = {record for records in found.values() for record in records}
    return found, sorted({*by_key.values(), *(one for ones in by_file.values() for one in ones.values())} - there)


def all_keys(version: Version, told: Dataset) -> Iterator[tuple[str, Positions, list[Key | None]]]:
    """The keys of all records of a version with their positions, in blocks of a file each."""
    for path in version.files():
        file = version.name_of(path)
        if told.format == "parquet":
            for positions, batch in all_rows(version, file, told.key):
                yield file, positions, keys_of(told, batch)
        else:
            for positions, lines in all_lines(version, file):
                yield file, positions, keys_of(told, lines)


def _by_position(version: Version, told: Dataset, asked: dict[str, dict[int, str]]) -> dict[str, dict[str, int]]:
    files = {version.name_of(path) for path in version.files()}
    return {
        file: there
        for file, records in sorted(asked.items())
        if file in files
        and (there := {records[at]: at for at in existing(version, told, file, list(records)).tolist()})
    }


def _by_key(version: Version, told: Dataset, asked: dict[str, str], keys: KeyRing) -> dict[str, dict[str, int]]:
    secrets = _secrets(version, keys) if any(text.startswith("hmac:") for text in asked) else []
    found: dict[str, dict[str, int]] = defaultdict(dict)
    seen: set[str] = set()
    for file, positions, block in all_keys(version, told):
        for position, key in zip(positions.tolist(), block, strict=True):
            if key is None:
                continue
            for text in (key_text(*key), *(hash_key(*key, secret=secret) for secret in secrets)):
                if text in asked:
                    record = asked[text]
                    if record in seen:
                        raise InputError(
                            f"Two records of {version.reference} stand under {record}: what the catalogue names as its "
                            "key does not tell them apart."
                        )
                    seen.add(record)
                    found[file][record] = position
    return dict(found)


def _secrets(version: Version, keys: KeyRing) -> list[bytes]:
    """Under which the keys of a version may be hashed: its own, or where none is known, all that there are."""
    ring = keys.read()
    known = version_prefix(version.dataset, version.name) in ring.versions
    return [keys.of_version(version.dataset, version.name)] if known else ring.secrets
