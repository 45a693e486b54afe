"""Plans over a real lake graph: what is touched, what is read, what is in doubt, and what is refused."""

import itertools
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import polars as pl
import pytest

from provenance_store.errors import InputError
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake import layout, orders, tweets
from provenance_store.lake.layout import Version
from provenance_store.lake.places import Places
from provenance_store.lake.records import lines_of
from provenance_store.model.ids import hash_key
from provenance_store.model.keys import KeyRing
from provenance_store.purge.approval import approve, check_may_begin, read_approval
from provenance_store.purge.plan import StoredPlan, open_plan
from provenance_store.purge.planning import make_plan
from provenance_store.purge.selection import select_ids
from provenance_store.settings import Settings
from provenance_store.streams.event import END
from provenance_store.streams.live import Edge, Expired, SinkVertex, SourceVertex
from spark_apps.dics.hashtag_count import find_hashtags
from tests.handmade import ids_of, put, tell
from tests.live_stream import message
from tests.reduced import write_reduced

COLUMNS = 'format = "text"\ncolumns = ["name", "n"]\nseparator = "\\t"\nkey = ["name"]\n'
Merge = Callable[..., None]


@pytest.fixture
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


@pytest.fixture
def settings(neo4j_service: Settings, tmp_path: Path) -> Settings:
    # Recordings, so that no broker is asked here.
    return neo4j_service.model_copy(update={"lake": tmp_path / "lake", "recordings": tmp_path / "recordings"})


@pytest.fixture
def word() -> str:
    """A word that nothing else in the database begins with."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def merge(lake_graph: LakeGraph, tmp_path: Path) -> Merge:
    numbers = itertools.count()

    def merge(run, edges, **told) -> None:
        lake_graph.merge(write_reduced(tmp_path / f"reduced-{next(numbers)}", run, edges, **told))

    return merge


class Chain:
    """raw/v1, from which a run made counts, from which another made totals: `a` and `b` of each from their like."""

    def __init__(self, settings: Settings, graph: LakeGraph, merge: Merge, word: str, **policies: str) -> None:
        self.settings, self.graph, self.word = settings, graph, word
        told = {"raw": "delete", "counts": "recompute", "totals": "recompute", **policies}
        for dataset, policy in told.items():
            tell(settings.lake, f'[{dataset}]\n{COLUMNS}policy = {{ do = "{policy}" }}\n')
        self.raw = put(settings.lake, f"raw/{word}", ["a\t1", "a2\t1", "b\t2"])
        self.counts = put(settings.lake, f"counts/{word}-c", ["a\t2", "b\t2"], run=f"{word}-c", inputs=[f"raw/{word}"])
        self.totals = put(
            settings.lake, f"totals/{word}-t", ["a\t2", "b\t2"], run=f"{word}-t", inputs=[f"counts/{word}-c"]
        )
        raw, counts, totals = map(ids_of, (self.raw, self.counts, self.totals))
        self.selected = raw["a"]
        self.count_edges = [(counts["a"], raw["a"]), (counts["a"], raw["a2"]), (counts["b"], raw["b"])]
        self.total_edges = [(totals[name], counts[name]) for name in "ab"]
        self._merge = merge

    def merge(self, *, counts=None, totals=None) -> None:
        self._merge(f"{self.word}-c", self.count_edges, dic="counting", **(counts or {}))
        self._merge(f"{self.word}-t", self.total_edges, dic="totalling", **(totals or {}))

    def plan(self, *ids: str, **more) -> StoredPlan:
        selection = select_ids(self.settings, ids or [self.selected], by="eve")
        return make_plan(self.settings, self.graph, selection.id, by="eve", **more)

    def approve(self, stored: StoredPlan, **more):
        return approve(self.settings, self.graph, stored.id, by="officer", **more)


@pytest.fixture
def chain(settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str) -> Chain:
    return Chain(settings, lake_graph, merge, word)


def steps_of(stored: StoredPlan) -> dict[str, tuple]:
    return {step.dataset: (step.policy, step.selected, step.reached, step.records) for step in stored.plan.steps}


# --- what is touched, and what is read


@pytest.mark.parametrize("subtracts", [True, False])
def test_a_twitter_lake_is_planned_as_brute_force_says(
    settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str, subtracts: bool
) -> None:
    source = tweets.generate(settings.lake, count=60, seed=4, version=word)
    if not subtracts:
        catalogue = settings.lake / "catalogue.toml"
        catalogue.write_text(catalogue.read_text().replace(', sums = ["count"]', ""))
    table = layout.version_of(settings.lake, "categories", word)
    tags = {record: {tag for tag, _ in find_hashtags(0, line.decode())} for record, line in lines_of(source)}
    tweeted = Counter(tag for found in tags.values() for tag in found)
    counts = put(
        settings.lake,
        f"hashtag_counts/{word}-c",
        [f"{tag}\t{count}" for tag, count in sorted(tweeted.items())],
        run=f"{word}-c",
        dic="hashtag-count",
        inputs=[source.reference],
    )
    count_of = ids_of(counts)
    edges = [(count_of[tag], record) for record, found in tags.items() for tag in found]
    merge(f"{word}-c", edges, dic="hashtag-count")
    rows = {record: msgspec.json.decode(line) for record, line in lines_of(table)}
    row_of = {row["hashtag"]: (record, row["category"]) for record, row in rows.items()}
    members = defaultdict(set)
    for tag in count_of.keys() & row_of.keys():
        members[row_of[tag][1]].add(tag)
    totals = put(
        settings.lake,
        f"category_totals/{word}-t",
        [f"{category}\t{len(found)}" for category, found in sorted(members.items())],
        run=f"{word}-t",
        dic="category-totals",
        inputs=[counts.reference, table.reference],
    )
    total_of = ids_of(totals)
    sources = {
        total_of[category]: {one for tag in found for one in (count_of[tag], row_of[tag][0])}
        for category, found in members.items()
    }
    merge(f"{word}-t", [(total, one) for total, found in sources.items() for one in found], dic="category-totals")

    chosen = {record for record, found in tags.items() if len(found) > 1}
    selection = select_ids(settings, chosen, by="eve")
    stored = make_plan(settings, lake_graph, selection.id, by="eve")

    hit_tags = {tag for record in chosen for tag in tags[record]}
    hit_totals = {total_of[row_of[tag][1]] for tag in hit_tags & row_of.keys()}
    assert [step.reference for step in stored.plan.steps] == [source.reference, counts.reference, totals.reference]
    assert steps_of(stored) == {
        "tweets": ("delete", len(chosen), 0, 60),
        "hashtag_counts": ("recompute", 0, len(hit_tags), len(tweeted)),
        "category_totals": ("recompute", 0, len(hit_totals), len(members)),
    }
    assert not any(step.whole for step in stored.plan.steps)
    assert (stored.plan.verdict, stored.plan.incomplete, stored.plan.holds, stored.plan.gone) == (
        "complete",
        [],
        [],
        [],
    )
    touched = stored.records()
    assert set(touched.filter("selected")["id"]) == chosen
    assert set(touched.filter(~pl.col("selected"))["id"]) == {count_of[tag] for tag in hit_tags} | hit_totals
    first, second = (set(stored.inputs(step)["id"]) for step in stored.plan.steps[1:])
    assert [step.subtracts for step in stored.plan.steps] == [False, subtracts, False]
    assert first == (chosen if subtracts else {one for one, found in tags.items() if found & hit_tags} - chosen)
    assert second == set().union(*(sources[total] for total in hit_totals))
    assert [step.reads for step in stored.plan.steps] == [0, len(first), len(second)]
    assert [topic.name for topic in stored.plan.topics] == ["headwater.category-totals", "headwater.hashtag-count"]
    assert open_plan(settings.lake, stored.id) == stored


def test_an_order_report_marked_by_its_top_n_is_made_anew_whole(
    settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str
) -> None:
    sold = orders.generate(settings.lake, count=40, seed=2, version=word)
    inputs = [sold.reference, f"customers/{word}"]
    for dataset in ("country_totals", "top_orders"):
        version = layout.version_of(settings.lake, dataset, f"{word}-o")
        about = {"run": f"{word}-o", "dic": "order-report", "inputs": inputs, "generation": 0}
        with layout.new_version(version, about) as folder:
            if dataset == "top_orders":
                (folder / "part-0.jsonl").write_text('{"country":"AT","place":1}\n')
            else:
                pl.DataFrame({"country": ["AT"], "cents": [1]}).write_parquet(folder / "part-0.parquet")
    order = f"lake:orders/{word}/part-00000.parquet#3"
    merge(f"{word}-o", [(f"lake:country_totals/{word}-o/part-0.parquet#0", order)], marks=["filter on row_number"])
    stored = make_plan(settings, lake_graph, select_ids(settings, [order], by="eve").id, by="eve")
    assert steps_of(stored) == {
        "orders": ("delete", 1, 0, 40),
        "country_totals": ("recompute", 0, 1, 1),
        "top_orders": ("recompute", 0, 0, 1),
    }
    for step in stored.plan.steps[1:]:
        assert "filter on row_number" in step.whole
        assert step.reads == 42
    assert stored.inputs().height == 0


def test_records_that_nobody_read_are_planned_too(chain: Chain) -> None:
    chain.count_edges = [edge for edge in chain.count_edges if edge[1] != chain.selected]
    chain.merge()
    stored = chain.plan()
    assert steps_of(stored) == {"raw": ("delete", 1, 0, 3)}
    assert stored.plan.incomplete == []
    # yet what was read and led to nothing may have been told of
    assert [topic.name for topic in stored.plan.topics] == ["headwater.dic"]


def test_records_are_followed_under_all_their_ids(
    settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str
) -> None:
    """One run read records by hashed keys and wrote plain keys, the next read these by their places."""
    chain = Chain(settings, lake_graph, merge, word)
    secret = KeyRing(settings).of_version("raw", word)
    by_key = {record: f"lake:raw/{word}#{hash_key(name, secret=secret)}" for name, record in ids_of(chain.raw).items()}
    names = {record: f"lake:counts/{word}-c#{name}" for name, record in ids_of(chain.counts).items()}
    chain.count_edges = [(names[output], by_key[source]) for output, source in chain.count_edges]
    chain.merge()
    for selected in (chain.selected, by_key[chain.selected]):
        stored = chain.plan(selected)
        assert steps_of(stored) == {
            "raw": ("delete", 1, 0, 3),
            "counts": ("recompute", 0, 1, 2),
            "totals": ("recompute", 0, 1, 2),
        }
        # what is read is told by where it stands: the other record of the group
        (read,) = stored.inputs(stored.plan.steps[1]).rows(named=True)
        assert (read["of_dataset"], read["file"], read["position"]) == ("raw", "part-0.txt", 4)


def test_ids_by_keys_that_the_catalogue_does_not_tell_are_refused(
    settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str
) -> None:
    tell(settings.lake, '[raw]\nformat = "text"\npolicy = { do = "delete" }\n')
    version = put(settings.lake, f"raw/{word}", ["a"])
    merge(f"{word}-x", [(f"lake:other/{word}#a", f"lake:raw/{word}#a")])
    selection = select_ids(settings, ids_of(version).values(), by="eve")
    with pytest.raises(InputError, match="tells no key of 'raw'"):
        make_plan(settings, lake_graph, selection.id, by="eve")


def test_what_an_earlier_purge_took_out_is_not_touched_again(chain: Chain) -> None:
    chain.merge()
    # As a purge leaves it: counts has lost `a`, and raw has lost `a2`.
    for version, content, old, new in (
        (chain.counts, b"b\t2\n", [0, 4], [-1, 0]),
        (chain.raw, b"a\t1\nb\t2\n", [0, 4, 9], [0, -1, 4]),
    ):
        (file,) = version.files()
        end = file.stat().st_size
        file.write_bytes(content)
        Places.unmoved(end).rewritten(old, new, end=len(content)).write(version, file)
    stored = chain.plan(chain.selected, chain.count_edges[2][1])
    assert steps_of(stored)["counts"] == ("recompute", 0, 1, 1)
    assert {step.dataset: step.absent for step in stored.plan.steps} == {"raw": 0, "counts": 1, "totals": 0}
    assert stored.inputs(stored.plan.steps[1]).height == 0


def test_versions_that_are_gone_are_named(chain: Chain) -> None:
    chain.merge()
    chain.totals.path.rename(chain.totals.path.with_name(".away"))
    stored = chain.plan()
    assert list(steps_of(stored)) == ["raw", "counts"]
    assert stored.plan.gone == [chain.totals.reference]


def test_tens_of_thousands_of_records(settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str) -> None:
    tell(
        settings.lake, f'[raw]\n{COLUMNS}policy = {{ do = "delete" }}\n[copy]\n{COLUMNS}policy = {{ do = "delete" }}\n'
    )
    lines = [f"n{number}\t1" for number in range(20_000)]
    raw = ids_of(put(settings.lake, f"raw/{word}", lines))
    copy = ids_of(put(settings.lake, f"copy/{word}", lines, run=word, inputs=[f"raw/{word}"]))
    merge(word, [(copy[name], raw[name]) for name in raw])
    stored = make_plan(settings, lake_graph, select_ids(settings, raw.values(), by="eve").id, by="eve")
    assert steps_of(stored) == {"raw": ("delete", 20_000, 0, 20_000), "copy": ("delete", 0, 20_000, 20_000)}
    assert set(stored.records(stored.plan.steps[1])["id"]) == set(copy.values())


# --- doubts


def test_complete_provenance_leaves_no_doubt_and_can_be_approved(chain: Chain) -> None:
    chain.merge()
    stored = chain.plan()
    given = chain.approve(stored)
    assert (given.plan, given.digest, given.who, given.despite) == (stored.id, stored.digest, "officer", "")
    assert read_approval(stored) == given == chain.approve(stored)
    assert check_may_begin(chain.settings, chain.graph, stored) == given
    with pytest.raises(InputError, match="was approved by officer"):
        approve(chain.settings, chain.graph, stored.id, by="someone else")


def test_a_plan_that_is_not_approved_may_not_begin(chain: Chain) -> None:
    chain.merge()
    stored = chain.plan()
    with pytest.raises(InputError, match=f"Plan {stored.id} is not approved"):
        check_may_begin(chain.settings, chain.graph, stored)
    (stored.path / "approval.json").write_text('{"plan":"p-0","digest":"0","who":"x","when":"then"}')
    with pytest.raises(InputError, match="approves another plan"):
        check_may_begin(chain.settings, chain.graph, stored)


@pytest.mark.parametrize(
    ("told", "doubt"),
    [
        ({"verdict": "partial"}, "What the lake graph knows of run {word}-c of counting is partial."),
        ({"marks": ["declared"], "verdict": "unknown"}, "Run {word}-c of counting was only declared"),
    ],
)
def test_a_plan_over_incomplete_provenance_needs_a_reason(chain: Chain, told: dict, doubt: str) -> None:
    chain.merge(counts=told)
    stored = chain.plan()
    assert stored.plan.verdict == told["verdict"]
    (sentence,) = stored.plan.incomplete
    assert doubt.format(word=chain.word) in sentence
    assert stored.plan.steps[1].whole
    with pytest.raises(InputError, match="incomplete provenance") as error:
        chain.approve(stored)
    assert sentence in str(error.value)
    assert chain.approve(stored, despite="the deadline is today").despite == "the deadline is today"


def test_a_run_that_was_never_merged_is_in_doubt(chain: Chain) -> None:
    chain.merge()
    put(chain.settings.lake, "counts/late", ["a\t1"], run=f"{chain.word}-late", inputs=[chain.raw.reference])
    stored = chain.plan()
    (sentence,) = stored.plan.incomplete
    assert f"counts/late was made by run {chain.word}-late, of which the lake graph has no graph" in sentence
    assert "no graph of run" in {step.version: step for step in stored.plan.steps}["late"].whole


def test_an_execution_later_than_the_graph_is_in_doubt(
    settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str
) -> None:
    chain = Chain(settings, lake_graph, merge, word)
    put(settings.lake, "counts/again", ["a\t1"], run=f"{word}-c", inputs=[chain.raw.reference], generation=7)
    chain.merge(counts={"generation": 6})
    (sentence,) = chain.plan().plan.incomplete
    assert "counts/again was made by a later execution of run" in sentence


def test_a_pruned_run_is_in_doubt(chain: Chain) -> None:
    chain.merge()
    chain.graph.prune(before=datetime.now(UTC), dataset=chain.counts.dataset)
    stored = chain.plan()
    assert stored.plan.verdict == "partial"
    assert f"Run {chain.word}-c was pruned from the lake graph" in stored.plan.incomplete[0]


def test_records_that_are_live_in_a_running_query_are_in_doubt(
    settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str
) -> None:
    for dataset in (f"{word}-raw", f"{word}-alerts"):
        tell(settings.lake, f'[{dataset}]\n{COLUMNS}policy = {{ do = "delete" }}\n')
    raw = ids_of(put(settings.lake, f"{word}-raw/v1", ["a\t1", "b\t2", "c\t3"]))
    run, result = f"{word}-s", f"lake:{word}-alerts/{word}-s/part-0.jsonl#0"
    begun = [SourceVertex(0, raw["a"], -99), SourceVertex(0, raw["b"], 5), SinkVertex(0, result, 5)]
    told = [*begun, Edge(0, result, raw["a"]), Edge(0, result, raw["b"]), Expired(0, result), Expired(50, raw["a"])]
    lake_graph.ensure_schema()
    lake_graph.apply_live([message(run, told, watermark=50)])

    def plan(name: str) -> StoredPlan:
        return make_plan(settings, lake_graph, select_ids(settings, [raw[name]], by="eve").id, by="eve")

    stored = plan("b")
    goes_on, is_live = stored.plan.incomplete
    assert f"Run {run} of {run}-query goes on, and what it has made so far may not be in the lake yet" in goes_on
    assert f"1 of the records are live in run {run} of {run}-query, {raw['b']} for one" in is_live
    assert "wait until they have expired" in is_live
    assert "stop and finish the run" in is_live
    assert f"live in run {run}" in (stored.path / "plan.html").read_text()
    assert stored.plan.verdict == "unknown"
    assert f"headwater.live.{run}-query" in [topic.name for topic in stored.plan.topics]
    with pytest.raises(InputError, match="incomplete provenance"):
        approve(settings, lake_graph, stored.id, by="officer")
    assert approve(settings, lake_graph, stored.id, by="officer", despite="it cannot wait").despite
    # One that has expired leads to nothing more; of one that nobody told of, nobody knows.
    assert [sentence[:4] for sentence in plan("a").plan.incomplete] == ["Run "]
    (sentence,) = plan("c").plan.incomplete
    assert f"1 of the records are not surely expired in run {run} of {run}-query, {raw['c']} for one" in sentence
    # When the run has ended, and its finished graph is merged, nothing of this is left.
    lake_graph.apply_live([message(run, [Expired(END, raw["b"])], step=1, watermark=END)])
    assert [sentence[:4] for sentence in plan("b").plan.incomplete] == ["Run "]
    assert plan("c").plan.incomplete == []
    merge(run, [(result, raw["a"]), (result, raw["b"])], dic=f"{run}-query")
    assert plan("b").plan.incomplete == []


def test_records_outside_the_lake_are_in_doubt(chain: Chain) -> None:
    chain.total_edges.append(("lake:elsewhere", chain.count_edges[0][0]))
    chain.merge()
    (sentence,) = chain.plan().plan.incomplete
    assert "lake:elsewhere for one" in sentence


# --- refusals


def test_a_held_dataset_stops_the_plan(settings: Settings, lake_graph: LakeGraph, merge: Merge, word: str) -> None:
    chain = Chain(settings, lake_graph, merge, word, totals='hold", who = "court", why = "trial 7')
    chain.merge()
    stored = chain.plan()
    assert [(held.dataset, held.records) for held in stored.plan.holds] == [("totals", 1)]
    assert set(stored.records()["dataset"]) == {"raw", "counts"}
    with pytest.raises(InputError, match=re.escape("totals (1 records) is held by court: trial 7")):
        chain.approve(stored, despite="I insist")


def test_an_unknown_dataset_stops_the_plan(chain: Chain) -> None:
    chain.merge()
    catalogue = chain.settings.lake / "catalogue.toml"
    catalogue.write_text(catalogue.read_text().partition("[totals]")[0])
    with pytest.raises(InputError, match="Records of 'totals' are touched"):
        chain.plan()


def test_a_version_that_no_run_made_cannot_be_made_anew(chain: Chain) -> None:
    chain.merge()
    (chain.totals.path / "_headwater.json").write_text("{}")
    with pytest.raises(InputError, match="no captured run made it"):
        chain.plan()


def test_inputs_that_are_not_in_the_lake_stop_the_plan(chain: Chain) -> None:
    chain.count_edges.append((chain.count_edges[0][0], f"lake:view/{chain.word}#7"))
    chain.merge()
    with pytest.raises(InputError, match=f"lake:view/{chain.word}#7, from which run .* is not in the lake"):
        chain.plan()


def test_selected_records_that_have_gone_stop_the_plan(chain: Chain) -> None:
    chain.merge()
    selection = select_ids(chain.settings, [chain.selected], by="eve")
    chain.raw.files()[0].unlink()
    with pytest.raises(InputError, match="1 of the 1 selected records are no longer in the lake"):
        make_plan(chain.settings, chain.graph, selection.id, by="eve")
    with pytest.raises(InputError, match="There is no selection"):
        make_plan(chain.settings, chain.graph, "s-0123456789abcdef", by="eve")


def test_an_expired_plan_is_refused(chain: Chain) -> None:
    chain.merge()
    stored = chain.plan(valid=timedelta(0))
    with pytest.raises(InputError, match=f"Plan {stored.id} expired on"):
        chain.approve(stored)


def _touch(version: Version) -> None:
    (file,) = version.files()
    file.write_bytes(file.read_bytes())


def _hold(catalogue: Path) -> None:
    text = catalogue.read_text()
    catalogue.write_text(text.replace('do = "delete"', 'do = "hold", who = "court", why = "trial"'))


@pytest.mark.parametrize(
    ("move_on", "what"),
    [
        (lambda chain: _touch(chain.raw), "raw/"),
        (lambda chain: _touch(chain.totals), "totals/"),
        (lambda chain: put(chain.settings.lake, "raw/newer", ["z\t1"]), "raw/newer"),
        (lambda chain: put(chain.settings.lake, "x/r", ["z"], run="r", inputs=[chain.raw.reference]), "made from it"),
        (lambda chain: _hold(chain.settings.lake / "catalogue.toml"), "the catalogue"),
        (lambda chain: chain.merge(counts={"generation": 1}), "the lake graph"),
    ],
)
def test_a_plan_is_void_once_the_lake_has_moved_on(chain: Chain, move_on: Callable[[Chain], None], what: str) -> None:
    chain.merge()
    stored = chain.plan()
    move_on(chain)
    with pytest.raises(InputError, match="is void: the lake has moved on") as error:
        chain.approve(stored)
    assert what in str(error.value)


def test_what_does_not_concern_a_plan_leaves_it_standing(chain: Chain, merge: Merge) -> None:
    chain.merge()
    stored = chain.plan()
    put(chain.settings.lake, "elsewhere/v1", ["z"])
    merge(f"{chain.word}-z", [(f"lake:{chain.word}-out/v#1", f"lake:{chain.word}-in/v#1")])
    chain.approve(stored)
    check_may_begin(chain.settings, chain.graph, stored)
