"""An example as files: `query.json`, and its source events as a version of their dataset. The folder is a lake."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.streams.examples.catalogue import Example

_EVENTS = "part-00000.jsonl"


class Written(NamedTuple):
    """Where the two files are."""

    query: Path
    events: Path


def write_example(example: Example, out: Path, *, count: int, seed: int, keys: int | None = None) -> Written:
    """Write the query and `count` source events under `out`; again changes nothing."""
    events, query = write_events(example, out, count=count, seed=seed, keys=keys), out / "query.json"
    with _telling(example, out):
        query.write_bytes(example.query.to_json())
    return Written(query, events)


def write_events(example: Example, lake: Path, *, count: int, seed: int, keys: int | None = None) -> Path:
    """Write `count` source events as a version of their dataset; again changes nothing."""
    dataset = example.query.sources[0].dataset
    about = {"generator": dataset, "count": count, "seed": seed, "keys": keys}
    name = f"n{count}-s{seed}" + (f"-k{keys}" if keys is not None else "")
    target = layout.version_of(lake, dataset, name)
    with _telling(example, lake):
        if not layout.was_made(target, about):
            with layout.new_version(target, about) as folder, (folder / _EVENTS).open("wb") as file:
                file.writelines(msgspec.json.encode(event) + b"\n" for event in example.events(count, seed, keys))
    return target.path / _EVENTS


@contextmanager
def _telling(example: Example, out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{example.name} cannot be written to {out}: {error.strerror}.") from None
