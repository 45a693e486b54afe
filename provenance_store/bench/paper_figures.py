"""The plots of the paper's evaluation, as PNG files, and what other plots share with them."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from provenance_store.bench.paper_accuracy import EXACT, Accuracy
from provenance_store.bench.paper_sizes import LocalOut
from provenance_store.bench.paper_speedup import Speed
from provenance_store.errors import InputError

_INCHES = (6.4, 4.0)
_DPI = 110
# A legend of more lines would lie over them.
_MOST_WITHIN = 7


def prepare(folder: Path) -> None:
    """Make the folder; InputError where nothing can be drawn there, before anything is measured."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - only this benchmark draws
    except ImportError:
        raise InputError("Drawing needs matplotlib, which is not installed: `pip install matplotlib`.") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written to: {error.strerror}.") from error


def draw_accuracy(rows: Sequence[Accuracy], folder: Path) -> None:
    """Figure 14."""
    figure, axes = new_plot("elements out of order, %", "true dependencies found, %")
    for way in dict.fromkeys(row.way for row in rows):
        own = [row for row in rows if row.way == way]
        axes.plot(
            [row.percent for row in own],
            [row.share for row in own],
            "--o" if "," in way else "-o",
            markersize=3,
            linewidth=4 if way == EXACT else 1.5,
            alpha=0.4 if way == EXACT else 1,
            label=way,
        )
    axes.set_ylim(-3, 103)
    save_plot(figure, folder / "paper-accuracy.png")


def draw_local(rows: Sequence[LocalOut], folder: Path) -> None:
    """Figure 16."""
    figure, axes = new_plot("local batch size, edges", "edges emitted by local reducers")
    for name in dict.fromkeys(row.partitioning for row in rows):
        own = [row for row in rows if row.partitioning == name]
        axes.plot([row.batch for row in own], [row.edges_out for row in own], "-o", markersize=3, label=name)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    save_plot(figure, folder / "paper-local.png")


def draw_speedup(rows: Sequence[Speed], folder: Path) -> None:
    """Figure 15."""
    figure, axes = new_plot("local reducers, a process each", "time with one over time with n")
    counts = [row.processes for row in rows]
    axes.plot(counts, counts, ":", color="grey", label="ideal")
    for label, turns in (
        ("local step", [row.local for row in rows]),
        ("local and global", [row.total for row in rows]),
        ("local step, processor time", [row.processor for row in rows]),
    ):
        axes.plot(counts, [median(turns[0]) / median(one) for one in turns], "-o", label=label)
    axes.set_xticks(counts)
    save_plot(figure, folder / "paper-speedup.png")


def new_plot(across: str, up: str) -> tuple[Any, Any]:
    """A figure with named axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only this benchmark draws

    figure = Figure(_INCHES, dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    return figure, axes


def save_plot(figure: Any, path: Path) -> None:
    """Write it, with what its lines mean."""
    axes = figure.axes[0]
    many = len(axes.get_legend_handles_labels()[1]) > _MOST_WITHIN
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if many else {}
    axes.legend(fontsize="small", **beside)
    # Without the name of what drew it the same figures make the same file.
    figure.savefig(path, metadata={"Software": None})
