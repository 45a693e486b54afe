"""An example as files: `query.json`, and its source events as a version of their dataset. The folder is a lake."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.streams.examples.catalogue import Example


class Written(NamedTuple):
    """Where the query and the first file of events are."""

    query: Path
    events: Path


def write_example(
    example: Example, out: Path, *, count: int, seed: int, keys: int | None = None, files: int = 1
) -> Written:
    """Write the query and `count` source events under `out`; again changes nothing."""
    events = write_events(example, out, count=count, seed=seed, keys=keys, files=files)
    query = out / "query.json"
    with _telling(example, out):
        query.write_bytes(example.query.to_json())
    return Written(query, events)


def write_events(
    example: Example, lake: Path, *, count: int, seed: int, keys: int | None = None, files: int = 1
) -> Path:
    """Write `count` source events as a version of their dataset, in so many files; again changes nothing.

    What is returned is the first file. Each is a second younger than the one before it, so that whoever reads them in
    the order in which they came, a few at a time, has the events in theirs.
    """
    dataset = example.query.sources[0].dataset
    about = {"generator": dataset, "count": count, "seed": seed, "keys": keys} | ({"files": files} if files > 1 else {})
    name = f"n{count}-s{seed}" + (f"-k{keys}" if keys is not None else "") + (f"-f{files}" if files > 1 else "")
    target = layout.version_of(lake, dataset, name)
    with _telling(example, lake):
        if not layout.was_made(target, about):
            with layout.new_version(target, about) as folder:
                events = iter(example.events(count, seed, keys))
                for number in range(files):
                    path = folder / f"part-{number:05}.jsonl"
                    size = count * (number + 1) // files - count * number // files
                    with path.open("wb") as file:
                        file.writelines(msgspec.json.encode(event) + b"\n" for event in islice(events, size))
                    came = time.time() - files + number
                    os.utime(path, (came, came))
    return target.path / "part-00000.jsonl"


@contextmanager
def _telling(example: Example, out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{example.name} cannot be written to {out}: {error.strerror}.") from None
