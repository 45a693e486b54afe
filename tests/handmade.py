"""Small lakes by hand: a catalogue, and versions of lines with the markers that runs leave."""

from collections.abc import Sequence
from pathlib import Path

from provenance_store.lake import layout
from provenance_store.lake.layout import Version
from provenance_store.lake.records import lines_of


def tell(root: Path, catalogue: str) -> None:
    """Add to the catalogue."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "catalogue.toml").open("a") as file:
        file.write(catalogue)


def put(
    root: Path,
    reference: str,
    lines: Sequence[str],
    *,
    run: str | None = None,
    inputs: Sequence[str] = (),
    dic: str = "dic",
    generation: int = 0,
) -> Version:
    """A version of lines; with a run, made by it from inputs."""
    dataset, _, name = reference.partition("/")
    version = layout.version_of(root, dataset, name)
    about = {} if run is None else {"run": run, "dic": dic, "inputs": list(inputs), "generation": generation}
    with layout.new_version(version, about) as folder:
        (folder / "part-0.txt").write_text("".join(f"{line}\n" for line in lines))
    return version


def ids_of(version: Version) -> dict[str, str]:
    """The ids of a version's lines, by their first column."""
    return {line.decode().split("\t")[0]: record for record, line in lines_of(version)}
