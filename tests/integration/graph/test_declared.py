"""Jobs that were only declared: answers go on across them, and say that they do not know."""

from pathlib import Path

from provenance_store.graph.queries import LakeGraph
from provenance_store.reduction.exact import reduce_messages
from provenance_store.reduction.output import write
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.declare import declare


def make_versions(lake: Path, *references: str) -> None:
    for reference in references:
        (lake / reference).mkdir(parents=True)


def test_an_answer_crosses_a_declared_job_and_says_unknown(
    lake_graph: LakeGraph, reduced, word: str, tmp_path: Path
) -> None:
    raw, clean, totals = (f"{word}-{name}" for name in ("raw", "clean", "totals"))
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    make_versions(settings.lake, f"{raw}/v1", f"{clean}/v1")
    # captured, declared, captured
    lake_graph.merge(
        reduced(f"{word}-r1", [(f"lake:{raw}/v1/f#{n}", f"lake:{word}-source/v1/f#{n}") for n in range(3)])
    )
    declare(settings, dic="cleaner", run=f"{word}-r2", inputs=[f"{raw}/v1"], outputs=[f"{clean}/v1"])
    assert settings.recordings is not None
    for folder in write(
        tmp_path / "declared", reduce_messages(RecordingSource(settings.recordings / "headwater.cleaner"))
    ):
        lake_graph.merge(folder)
    lake_graph.merge(reduced(f"{word}-r3", [(f"lake:{totals}/v1#a", f"lake:{clean}/v1/f#7")]))

    answer = lake_graph.backward([f"lake:{totals}/v1#a"])
    assert answer.verdict == "unknown"
    assert {(record.id, record.depth) for record in answer.records} == {
        (f"lake:{clean}/v1/f#7", 1),
        (f"lake:{raw}/v1", 2),
        *((f"lake:{word}-source/v1/f#{n}", 3) for n in range(3)),
    }
    answer = lake_graph.forward([f"lake:{word}-source/v1/f#1"])
    assert answer.verdict == "unknown"
    assert [record.id for record in answer.records] == [
        f"lake:{raw}/v1/f#1",
        f"lake:{clean}/v1",
        f"lake:{totals}/v1#a",
    ]

    # A record that no captured job has seen is known through its version.
    answer = lake_graph.backward([f"lake:{clean}/v1/f#99"], depth=1)
    assert [record.id for record in answer.records] == [f"lake:{raw}/v1"]
    assert answer.verdict == "unknown"
    # Within what was captured, nothing changes.
    assert lake_graph.backward([f"lake:{raw}/v1/f#1"]).verdict == "complete"


def test_a_foreign_id_that_looks_like_a_version_is_none(lake_graph: LakeGraph, reduced, word: str) -> None:
    lake_graph.merge(reduced(f"{word}-r1", [(f"lake:{word}/out", f"lake:{word}/in")]))
    lake_graph.merge(reduced(f"{word}-r2", [(f"lake:{word}-x/v#1", f"lake:{word}/out/part")]))
    assert [record.id for record in lake_graph.backward([f"lake:{word}-x/v#1"]).records] == [f"lake:{word}/out/part"]


def test_declaring_again_replaces(lake_graph: LakeGraph, word: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    make_versions(settings.lake, f"{word}-a/v1", f"{word}-b/v1", f"{word}-c/v1")
    for source in ("a", "b"):
        declare(settings, dic="job", run=word, inputs=[f"{word}-{source}/v1"], outputs=[f"{word}-c/v1"])
    assert settings.recordings is not None
    (folder,) = write(tmp_path / "out", reduce_messages(RecordingSource(settings.recordings / "headwater.job")))
    lake_graph.merge(folder)
    assert [record.id for record in lake_graph.backward([f"lake:{word}-c/v1"]).records] == [f"lake:{word}-b/v1"]
