"""What a Hadoop job is: the user's functions, and the private file that tells a worker all it needs to run them."""

import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from provenance_store.errors import InputError
from provenance_store.model.ids import file_prefix
from spark_apps.capture.writer import Policy

if TYPE_CHECKING:
    # Workers import this module, and the library that reads settings takes longer to load than all the rest.
    from provenance_store.settings import Settings

Pairs: TypeAlias = Iterable[tuple[str, str]]
MapFunction: TypeAlias = Callable[[int, str], Pairs]
GroupFunction: TypeAlias = Callable[[str, Iterator[str]], Pairs]

# Names the job file in a worker's environment; it holds a path, nothing secret.
JOB_FILE_VARIABLE = "HEADWATER_HADOOP_JOB"


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopJob:
    """A DIC for Hadoop Streaming, as plain functions.

    `map` is called with the position in a line's id (its byte offset, where the file was never rewritten) and the line;
    `combine` and `reduce` with a key and its values, which
    are read as they come. All give pairs of texts; `combine` keeps the key. The output is written to dataset `output`.
    """

    dic: str
    output: str
    map: MapFunction
    reduce: GroupFunction
    combine: GroupFunction | None = None
    reducers: int = 2


class InputRoot(msgspec.Struct, frozen=True):
    """A version that the job reads, the path under which Hadoop reads it, and the places of its rewritten files."""

    dataset: str
    version: str
    path: str
    places: dict[str, bytes] = {}


class JobFile(msgspec.Struct, frozen=True, kw_only=True):
    """All that a worker must know. Settings hold secrets: the file is its owner's alone and goes when the job ends."""

    run: str
    dic: str
    topic: str
    policy: Policy
    inputs: list[InputRoot]
    output_dataset: str
    output_version: str
    settings: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write it for the owner's eyes only."""
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> "JobFile":
        """The file that the driver wrote."""
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def open_settings(self) -> "Settings":
        """The driver's settings; nothing in the worker's own environment changes them."""
        from provenance_store.settings import Settings  # noqa: PLC0415 - see above

        return Settings(**self.settings)

    def input_prefix(self, uri: str) -> str:
        """The ids' beginning for a file that Hadoop reads, given as `mapreduce.map.input.file` names it."""
        root, file = self._input(uri)
        return file_prefix(root.dataset, root.version, file)

    def input_places(self, uri: str) -> bytes | None:
        """The places of such a file, if it was rewritten."""
        root, file = self._input(uri)
        return root.places.get(file)

    def _input(self, uri: str) -> tuple[InputRoot, str]:
        path = urlsplit(uri).path if "://" in uri else uri.removeprefix("file:")
        for root in self.inputs:
            if path.startswith(f"{root.path}/"):
                return root, path[len(root.path) + 1 :]
        raise InputError(f"The task reads {uri}, which is in none of {', '.join(root.path for root in self.inputs)}.")

    def output_prefix(self, partition: int) -> str:
        """The ids' beginning for the part that a task writes."""
        return file_prefix(self.output_dataset, self.output_version, f"part-{partition:05d}")


def dump_settings(settings: "Settings") -> dict[str, Any]:
    """Settings as JSON takes them, secrets in clear: only ever for a private file."""
    from pydantic import SecretStr  # noqa: PLC0415 - see above

    def reveal(value: object) -> str:
        return value.get_secret_value() if isinstance(value, SecretStr) else str(value)

    dumped: dict[str, Any] = json.loads(json.dumps(settings.model_dump(), default=reveal))
    return dumped


def load_job(reference: str) -> HadoopJob:
    """The job that `module:attribute` names."""
    module, colon, attribute = reference.partition(":")
    if not colon:
        raise InputError(f"{reference!r} names no job: write module:attribute.")
    try:
        job = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{reference!r} names no job: {error}.") from error
    if not isinstance(job, HadoopJob):
        raise InputError(f"{reference!r} is {type(job).__name__}, not a HadoopJob.")
    return job
