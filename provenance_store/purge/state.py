"""By what it is told that the lake has moved on under a plan: digests of all that the plan was made from.

A plan stands as long as none of these has changed: the files of every version of the datasets that it touches and of
the versions that it reads, what the catalogue tells of them, which versions were made from those that it touches, and
the graphs that lead from or into these datasets. Whatever else happens in the lake does not matter to it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from provenance_store.graph.consequences import KnownRun
from provenance_store.lake.catalogue import Catalogue
from provenance_store.lake.layout import Version
from provenance_store.purge.plan import Plan, Step
from provenance_store.purge.versions import list_made
from provenance_store.storage.paths import RemotePath

_CATALOGUE, _READERS, _GRAPH = "the catalogue", "what was made from it", "the lake graph"


class Runs(Protocol):
    """What has to be known of the lake graph; `LakeGraph` does."""

    def runs(self) -> list[KnownRun]:
        """All runs that it has a graph of, or had before it was pruned."""

    def runs_about(self, datasets: Iterable[str]) -> set[str]:
        """The runs with graphs that lead from or into datasets."""


class Moment:
    """Lake and lake graph as they are when this is made: what changes while a plan is made, changes after it."""

    def __init__(self, root: Path, graph: Runs) -> None:
        self.catalogue = Catalogue.load(root)
        self.runs = {run.run: run for run in graph.runs()}
        self.made = list_made(root)
        self._digests = {name: _digest_version(one.version) for name, one in self.made.items()}
        self._graph = graph

    def state(self, steps: Sequence[Step]) -> dict[str, str]:
        """The state of all that these steps depend on."""
        touched = {step.dataset for step in steps}
        read = {source for step in steps for source in step.inputs}
        changed = {step.reference for step in steps}
        versions = {
            name: digest
            for name, digest in sorted(self._digests.items())
            if name in read or self.made[name].version.dataset in touched
        }
        told = {name.partition("/")[0]: None for name in versions} | dict.fromkeys(sorted(touched))
        about = sorted(self._graph.runs_about(touched) & self.runs.keys())
        return {
            **versions,
            _CATALOGUE: _digest({name: self.catalogue.datasets.get(name) for name in told}),
            _READERS: _digest(sorted(name for name, one in self.made.items() if changed.intersection(one.inputs))),
            _GRAPH: _digest([(name, self.runs[name].generation, self.runs[name].revision) for name in about]),
        }


def find_changes(root: Path, graph: Runs, plan: Plan) -> list[str]:
    """What is no longer as it was when the plan was made: versions by their references, or a few words."""
    now = Moment(root, graph).state(plan.steps)
    return sorted(name for name in {*now, *plan.state} if now.get(name) != plan.state.get(name))


def _digest_version(version: Version) -> str:
    if isinstance(version.path, RemotePath):
        found = [(name, one.size, one.modified, one.tag) for name, one in version.path.walk_files()]
        return _digest([sorted(found), version.marker()])
    try:
        files = [(path, path.stat()) for path in sorted(version.path.rglob("*")) if not path.is_dir()]
        listed = [(str(path.relative_to(version.path)), one.st_size, one.st_mtime_ns) for path, one in files]
        return _digest([listed, version.marker()])
    except FileNotFoundError:
        return "changing"  # under our eyes, by another purge, and so different next time


def _digest(told: object) -> str:
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()
