"""Answers to write: one by hand, and random ones with ids of every kind."""

from hypothesis import strategies as st

from provenance_store.graph.answer import Answer, AnsweredEdge, AnsweredRecord, CrossedRun
from provenance_store.graph.reduced import dataset_name
from provenance_store.model.account import worst_verdict
from provenance_store.model.ids import RecordId

COUNT, TWEET, OTHER = "lake:counts/r1#%C3%A9t%C3%A9", "lake:tweets/n1/part-0.jsonl#0", "lake:tweets/n1/part-0.jsonl#57"
BY_HAND = Answer(
    start=[COUNT],
    direction="backward",
    verdict="partial",
    records=[AnsweredRecord(TWEET, "tweets", 1), AnsweredRecord(OTHER, "tweets", 1)],
    edges=[AnsweredEdge(COUNT, TWEET, "r1"), AnsweredEdge(COUNT, OTHER, "r1")],
    runs=[CrossedRun("r1", "hashtag-count", "partial")],
)

# Whatever a file may be called or a key may hold, and whatever someone else may have made up.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
own = st.builds(
    lambda dataset, version, key: str(RecordId(dataset, version, key=key)),
    texts.filter(lambda text: "/" not in text),
    texts.filter(lambda text: "/" not in text),
    st.lists(texts, min_size=1, max_size=2).map(tuple),
)
ids = st.one_of(own, texts.map("lake:{}".format), texts, st.sampled_from(["lake:", "lake:-a.", "lake:a%2", "quoted:a"]))


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    records = draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    runs = draw(st.lists(st.builds(CrossedRun, texts, texts, st.sampled_from(["complete", "partial"])), max_size=2))
    runs = sorted({run.run: run for run in runs}.values())
    edges = [
        AnsweredEdge(draw(st.sampled_from(records[:at])), record, draw(st.sampled_from(runs)).run)
        for at, record in enumerate(records)
        if at and runs
    ]
    reached = [AnsweredRecord(edge.input, dataset_name(edge.input), 1) for edge in edges]
    return Answer(
        start=records[:1],
        direction="backward",
        verdict=worst_verdict(run.verdict for run in runs),
        records=reached,
        edges=sorted(edges),
        runs=runs,
    )
