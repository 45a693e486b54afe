import io

import pytest
from rich.console import Console, RenderableType

from provenance_store.graph.answer import Answer, AnsweredEdge, AnsweredRecord, CrossedRun
from provenance_store.graph.render import DEPTH, as_tree
from provenance_store.graph.render import as_table as as_table_of


def shown(what: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(what)
    return out.getvalue()


def answer(edges, *, direction="backward", verdict="complete", start="s") -> Answer:
    far = 1 if direction == "backward" else 0
    ids = sorted({edge[far] for edge in edges} - {start})
    return Answer(
        start=[start],
        direction=direction,
        verdict=verdict,
        records=[AnsweredRecord(record, "tweets", 1) for record in ids],
        edges=[AnsweredEdge(output, source, "run-1") for output, source in edges],
        runs=[CrossedRun("run-1", "dic", verdict)],
    )


def as_table(found: Answer) -> RenderableType:
    return as_table_of(found.summary(), found.records)


@pytest.mark.parametrize("verdict", ["complete", "unknown", "partial"])
def test_the_verdict_stands_at_the_top(verdict):
    for render in (as_tree, as_table):
        assert shown(render(answer([("s", "a")], verdict=verdict))).splitlines()[0].startswith(f" {verdict} ")


def test_the_header_counts_records_per_dataset():
    text = shown(as_table(answer([("s", f"r{i}") for i in range(1200)])))
    assert "1,200 records backward over 1 run" in text
    assert "tweets  1,200" in text
    assert "… and 200 more" in text


def test_many_children_are_cut():
    text = shown(as_tree(answer([("s", f"r{i:04}") for i in range(1214)])))
    assert "… and 1,204 more" in text
    assert text.count("run-1") == 10


def test_a_record_is_unfolded_once():
    text = shown(as_tree(answer([("s", "a"), ("s", "b"), ("a", "c"), ("b", "c"), ("c", "d")])))
    assert text.count("c  run-1") == 2
    assert text.count("see above") == 1
    assert text.count("d  run-1") == 1


def test_a_cycle_ends_at_the_start():
    text = shown(as_tree(answer([("s", "a"), ("a", "s")])))
    assert "s  run-1  see above" in text


def test_forward_unfolds_from_inputs_to_outputs():
    lines = shown(as_tree(answer([("a", "s"), ("b", "a")], direction="forward"))).splitlines()
    assert [line.strip("─└│├ ").split("  ")[0] for line in lines[-3:]] == ["s", "a", "b"]


def test_a_long_chain_is_cut():
    edges = [("s", "0"), *((str(i), str(i + 1)) for i in range(3000))]
    assert f"deeper than {DEPTH} steps" in shown(as_tree(answer(edges)))


def test_ids_are_never_read_as_markup():
    assert "lake:x/1#[red]" in shown(as_tree(answer([("s", "lake:x/1#[red]")])))
    assert "lake:x/1#[red]" in shown(as_table(answer([("s", "lake:x/1#[red]")])))
