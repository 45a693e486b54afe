"""The versions of a lake and who made them, as their markers tell."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provenance_store.lake import layout
from provenance_store.lake.layout import Version


@dataclass(frozen=True, slots=True)
class Made:
    """A version, and the captured run that made it from which inputs; no run where nobody told."""

    version: Version
    run: str | None = None
    dic: str | None = None
    inputs: tuple[str, ...] = ()
    generation: int = 0
    # Whether a stream query made it: its results, or first inputs that it landed.
    is_stream: bool = False

    @property
    def reference(self) -> str:
        """How a person names the version."""
        return self.version.reference


def list_made(root: Path) -> dict[str, Made]:
    """Every version of the lake, by its reference."""
    versions = (version for dataset in layout.list_datasets(root) for version in layout.list_versions(root, dataset))
    return {version.reference: _read(version, version.marker()) for version in versions}


def _read(version: Version, marker: dict[str, Any]) -> Made:
    match marker:
        case {"run": str(run), "dic": str(dic), "inputs": [*inputs]}:
            return Made(
                version, run, dic, tuple(map(str, inputs)), int(marker.get("generation", 0)), "stream" in marker
            )
    return Made(version)
