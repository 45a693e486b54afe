"""Records made anew, by running the DIC that made them in a lake of its own that holds only what it is to read.

Ids stay as they are there, because places go along. A run of which all is made anew is captured as it was at first: its
graph replaces the one that the lake graph has, under the ids that its records have in the lake.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.catalogue import Catalogue, Dataset
from provenance_store.lake.contents import all_lines, all_rows, schema_of
from provenance_store.lake.layout import Version, version_of
from provenance_store.lake.places import TAKEN_OUT, Places, Positions
from provenance_store.lake.subsets import bring, write_subset
from provenance_store.model.ids import file_prefix
from provenance_store.purge import folders
from provenance_store.purge.edits import Edits
from provenance_store.purge.plan import Step, StoredPlan
from provenance_store.reduction import output
from provenance_store.reduction.exact import reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from provenance_store.transport.wiring import topic_of

_SCRATCH, _GRAPHS = "scratch", "graphs"


class Rerun(Protocol):
    """Runs a DIC again, in the lake that the settings name."""

    def __call__(self, dic: str, settings: Settings, *, run: str, inputs: Sequence[str], captured: bool) -> None:
        """The outputs are versions named after the run; what is captured is recorded."""


class Remaking:
    """What the steps of one purge make anew."""

    def __init__(
        self,
        settings: Settings,
        graph: LakeGraph,
        stored: StoredPlan,
        *,
        rerun: Rerun,
        current: Callable[[str], Version],
    ) -> None:
        self._settings = settings
        self._graph = graph
        self._stored = stored
        self._rerun = rerun
        self._current = current
        self._catalogue = Catalogue.load(settings.lake)
        # A DIC runs in a folder of this machine: the plan's, or one for it.
        self._folder = folders.work_folder(settings) / "plans" / stored.id

    def remake(self, step: Step) -> Version | None:
        """A version that holds what the DIC makes of what is left for it to read; None where nothing is left."""
        if step.run is None or step.dic is None:
            raise InputError(f"Nobody knows what made {step.reference}, so it cannot be made anew.")
        scratch = self._scratch(step.run)
        made = version_of(scratch / "lake", step.dataset, step.version)
        if not made.exists():
            shutil.rmtree(scratch, ignore_errors=True)
            if not self._put_inputs(step, scratch / "lake"):
                return None
            settings = self._settings_in(scratch)
            self._rerun(step.dic, settings, run=step.run, inputs=step.inputs, captured=self._is_whole(step.run))
        if not made.exists():
            raise InputError(f"DIC {step.dic} was run again and wrote no {step.reference}: it cannot be made anew.")
        return made

    def note(self, step: Step, made: Edits, draft: Version) -> None:
        """Keep which records of a whole step stand for which that were made anew."""
        if not step.whole or step.policy != "recompute" or made.matched is None or step.run is None:
            return
        told = self._catalogue.of(step.dataset)
        remade = version_of(self._scratch(step.run) / "lake", step.dataset, step.version)
        files = [remade.name_of(path) for path in remade.files()]
        new = pl.concat([pl.Series("made", [], pl.String), *(_ids_in(remade, told, file) for file in files)])
        pairs = made.matched.old.drop_nulls("row")
        prefixes = {file: _prefix(draft, file) for file in pairs["file"].unique()}
        stands = pairs.select(
            pl.col("row"), pl.concat_str(pl.col("file").replace_strict(prefixes, default=""), "position").alias("id")
        )
        if made.appended_to is not None:
            ids = _ids_in(draft, told, made.appended_to).tail(len(made.appended))
            stands = pl.concat([stands, pl.DataFrame({"row": made.appended, "id": ids}, schema=stands.schema)])
        names = stands.with_columns(new.gather(stands["row"]).alias("made")).select("made", "id")
        names.write_parquet(self._scratch(step.run) / f"ids-{step.dataset}.parquet")

    def merge(self) -> None:
        """Replace the graphs of runs that were made anew whole."""
        for run in dict.fromkeys(step.run for step in self._stored.plan.steps if self._is_remade_whole(step)):
            if run is not None and (self._scratch(run) / "lake").exists():
                self._graph.merge(self._reduce(run))

    def clean(self) -> None:
        """Remove what was only needed on the way; graphs stay, as the newest of their runs."""
        shutil.rmtree(self._folder / _SCRATCH, ignore_errors=True)

    def _put_inputs(self, step: Step, lake: Path) -> bool:
        """Put what is to be read into a lake; whether there is anything."""
        steps = [one for one in self._stored.plan.steps if one.run == step.run and one.policy == "recompute"]
        whole = self._is_whole(step.run)
        wanted = pl.concat([self._stored.inputs(one) for one in steps])
        found = 0
        for reference in dict.fromkeys(step.inputs):
            # What goes away is in the version still, and no longer in its draft.
            version = version_of(self._settings.lake, *reference.split("/", 1))
            version = version if step.subtracts else self._current(reference)
            if whole:
                bring(version, lake / reference)
                found += 1
            else:
                rows = wanted.filter(pl.format("{}/{}", "of_dataset", "of_version") == reference)
                found += self._put_records(version, rows, lake)
        return bool(found)

    def _put_records(self, version: Version, wanted: pl.DataFrame, lake: Path) -> int:
        told = self._catalogue.of(version.dataset)
        there: dict[str, Positions] = {}
        for (file,), rows in wanted.group_by(["file"]):
            positions = np.unique(rows["position"].to_numpy())
            places = Places.load(version, version.at(str(file)))
            if places is not None:  # else nothing was ever taken out
                positions = positions[places.physicals(positions) != TAKEN_OUT]
            there[str(file)] = positions
        there = {file: positions for file, positions in there.items() if positions.size}
        part = write_subset(version, told, there, lake)
        if not there:
            _leave_empty(version, told, part)
        return sum(positions.size for positions in there.values())

    def _settings_in(self, scratch: Path) -> Settings:
        home = scratch / "home"
        home.mkdir(parents=True, exist_ok=True)
        # Personal keys must be hashed as they were.
        if not (home / "secrets").is_symlink():
            (home / "secrets").symlink_to(self._settings.hmac_key_file.parent.absolute())
        recordings = scratch / "recordings"
        return self._settings.model_copy(update={"lake": scratch / "lake", "home": home, "recordings": recordings})

    def _reduce(self, run: str) -> Path:
        """The graph of a run that was made anew, under the ids that its records have in the lake."""
        scratch, folder = self._scratch(run), self._folder / _GRAPHS / run
        steps = [step for step in self._stored.plan.steps if step.run == run]
        recording = scratch / "recordings" / topic_of(steps[0].dic or "")
        [reduced] = output.choose_runs(reduce_messages(RecordingSource(recording)), str(recording), run)
        files = [scratch / f"ids-{step.dataset}.parquet" for step in steps]
        names = pl.concat([pl.read_parquet(file, glob=False) for file in files if file.exists()])
        edges = reduced.graph.join(names, left_on="output", right_on="made", how="left", maintain_order="left")
        named = edges.select(pl.coalesce("id", "output").alias("output"), "input").sort("input", "output")
        output.write(folder, [reduced._replace(graph=named)])
        return folder

    def _is_whole(self, run: str | None) -> bool:
        return any(step.run == run and self._is_remade_whole(step) for step in self._stored.plan.steps)

    @staticmethod
    def _is_remade_whole(step: Step) -> bool:
        return bool(step.whole) and step.policy == "recompute"

    def _scratch(self, run: str) -> Path:
        return self._folder / _SCRATCH / run


def _ids_in(version: Version, told: Dataset, file: str) -> pl.Series:
    """The positional ids of all records of a file."""
    parts = all_rows(version, file, []) if told.format == "parquet" else all_lines(version, file)
    positions = np.concatenate([np.empty(0, np.int64), *(places for places, _ in parts)])
    return pl.select(pl.concat_str(pl.lit(_prefix(version, file)), pl.Series(positions)).alias("made")).to_series()


def _prefix(version: Version, file: str) -> str:
    return file_prefix(version.dataset, version.name, file)


def _leave_empty(version: Version, told: Dataset, part: Version) -> None:
    """A version of no records, in a file that readers know the columns from."""
    name = version.name_of(version.files()[0])
    (part.path / name).parent.mkdir(parents=True, exist_ok=True)
    if told.format == "parquet":
        pq.write_table(schema_of(version, name).empty_table(), part.path / name)
    else:
        with pa.output_stream(str(part.path / name)):  # compressed as its name tells
            pass
