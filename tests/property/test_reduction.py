"""The whole reduction against a brute-force closure in plain Python that shares no code with it."""

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import DocumentError
from provenance_store.model.document import RELATION_ENDS, Edge, read_document, write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction.contract import contract
from provenance_store.reduction.documents import Read, read_documents, summarise
from provenance_store.reduction.exact import Reduced, reduce_messages
from provenance_store.reduction.executions import contract_locally
from provenance_store.reduction.intern import in_lake, intern, siphash
from provenance_store.reduction.native import pad
from provenance_store.reduction.scan import scan
from provenance_store.reduction.schemas import RELATIONS
from provenance_store.reduction.texts import sort_texts, to_strings
from provenance_store.transport.port import Received

Told = tuple[str, str, str]  # relation, dependent, dependency: compact ids
POISON = (b"", b"not JSON", b"[1]", b'{"used":{"_:1":{"prov:activity":1,"prov:entity":"x:y"}}}')


def entities(draw: st.DrawFn, *, lake: bool) -> list[str]:
    items = [f"run:item-{n}" for n in range(draw(st.integers(1, 6)))]
    records = [f"lake:set/v1#{n}" for n in range(draw(st.integers(0, 5)))] if lake else []
    return items + records


@st.composite
def steps(draw: st.DrawFn, *, lake: bool, max_size: int = 10) -> list[list[Told]]:
    """Whole executions, derivations and memberships over a few entities, so that they share, chain and cycle."""
    some = st.lists(st.sampled_from(entities(draw, lake=lake)), max_size=4)
    drawn: list[list[Told]] = []
    for number in range(draw(st.integers(0, max_size))):
        kind = draw(st.sampled_from(["execution", "execution", "execution", "derivation", "collection"]))
        left, right = draw(some), draw(some)
        if kind == "execution":
            activity = f"run:execution-{number}"
            drawn.append([("used", activity, e) for e in left] + [("wasGeneratedBy", e, activity) for e in right])
        elif kind == "derivation":
            drawn.append([("wasDerivedFrom", a, b) for a, b in zip(left, right, strict=False)])
        else:
            drawn.append([("hadMember", a, b) for a in left[:1] for b in right])
    return drawn


@dataclass
class Run:
    """A generated run: what was sent, what of it counts, and what the account must say."""

    run: str
    messages: list[Message] = field(default_factory=list)
    counted: list[Told] = field(default_factory=list)
    verdict: str = "unknown"
    missing: dict[str, list[int]] = field(default_factory=dict)
    rejected: int = 0
    duplicates: int = 0
    discarded: int = 0


@st.composite
def runs(draw: st.DrawFn, run: str) -> Run:
    told = Run(run)
    lake = draw(st.integers(0, 4)) > 0
    has_manifest = draw(st.booleans())
    attempts: dict[str, int] = {}
    for attempt in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        batches = draw(st.lists(steps(lake=lake, max_size=4), max_size=3))
        batches = [rename(batch, f"{attempt}{seq}") for seq, batch in enumerate(batches)]
        listed = draw(st.integers(0, 3)) > 0
        if listed:
            attempts[attempt] = len(batches)
        for seq, batch in enumerate(batches):
            send(draw, told, attempt, seq, flat(batch), counts=listed or not has_manifest, judged=has_manifest)
        if has_manifest and listed and draw(st.integers(0, 4)) == 0:
            beyond = Headers(run, "dic", attempt, len(batches))
            told.messages.append(Message.of(beyond, write_document(run, [("wasDerivedFrom", "lake:x", "lake:y")])))
            told.discarded += 1
    if has_manifest:
        told.verdict = "partial" if told.missing else "complete"
        older = Manifest(attempts={"zzz": 3}, generation=1)
        newest = Manifest(attempts=attempts, generation=draw(st.integers(2, 3)))
        for manifest in (older, newest, newest)[draw(st.integers(0, 1)) : draw(st.integers(2, 3))]:
            told.messages.append(Message.of(Headers(run, "dic", "", 0, kind=MANIFEST), manifest.to_bytes()))
    return told


def flat(batch: list[list[Told]]) -> list[Told]:
    return [edge for step in batch for edge in step]


def rename(batch: list[list[Told]], name: str) -> list[list[Told]]:
    """An execution is never split over messages, so no two messages share an activity."""

    def unique(node: str) -> str:
        return node.replace("execution", f"execution-{name}")

    return [[(relation, unique(a), unique(b)) for relation, a, b in step] for step in batch]


def send(draw: st.DrawFn, told: Run, attempt: str, seq: int, edges: list[Told], *, counts: bool, judged: bool) -> None:
    headers = Headers(told.run, "dic", attempt, seq)
    good = draw(st.sampled_from([1, 1, 1, 2, 0]))
    bad = draw(st.sampled_from([0, 0, 0, 1]))
    told.messages += [Message.of(headers, write_document(told.run, edges))] * good
    told.messages += [Message.of(headers, draw(st.sampled_from(POISON)))] * bad
    told.rejected += bad
    if counts:
        told.duplicates += max(good - 1, 0)
        if good:
            told.counted += edges
        elif judged:
            told.missing.setdefault(attempt, []).append(seq)
    else:
        told.discarded += good


def closure(run: str, told: list[Told]) -> set[tuple[str, str]]:
    """Every (output, input) by walking from each output alone."""
    namespace = f"urn:run:{run}:"
    edges = [(r, a.replace("run:", namespace, 1), b.replace("run:", namespace, 1)) for r, a, b in told]
    after: dict[str, set[str]] = {}
    for _, dependent, dependency in edges:
        after.setdefault(dependent, set()).add(dependency)
    activities = {a for r, a, _ in edges if r == "used"} | {b for r, _, b in edges if r == "wasGeneratedBy"}
    kept = {node for _, a, b in edges for node in (a, b)} - activities
    if any(node.startswith("lake:") for node in kept):
        outputs = inputs = {node for node in kept if node.startswith("lake:")}
    else:
        outputs = kept - {b for _, _, b in edges}
        inputs = {n for n in kept if not any(b in kept or b in after for b in after.get(n, ()))}
    found = set()
    for output in outputs:
        walked: set[str] = set()
        pending = list(after.get(output, ()))
        while pending:
            node = pending.pop()
            if node in walked:
                continue
            walked.add(node)
            if node not in inputs:
                pending.extend(after.get(node, ()))
        found |= {(output, node) for node in walked & inputs}
    return found


def reduce_in_order(messages: list[Message]) -> list[Reduced]:
    return reduce_messages(Received(message, 0, number) for number, message in enumerate(messages))


def pairs_of(read: Read, *, names_records: bool) -> set[tuple[str, str]]:
    _, relation, dependent, dependency = read.edges
    found = contract(relation, dependent, dependency, in_lake(read.ids.lo), names_records=names_records)
    ids = read.ids.keep_all()
    names = to_strings(ids.starts, ids.stops)
    return set(zip(names.gather(found.output), names.gather(found.input), strict=True))


@given(st.data())
def test_a_source_of_runs_reduces_to_the_closure_whatever_the_order(data: st.DataObject) -> None:
    told = [data.draw(runs(name), label=name) for name in ("r1", "r2")[: data.draw(st.integers(1, 2))]]
    told = [one for one in told if one.messages]
    messages = data.draw(st.permutations([message for one in told for message in one.messages]))
    reduced = reduce_in_order(list(messages))
    assert [one.run for one in reduced] == [one.run for one in told]
    for expected, got in zip(told, reduced, strict=True):
        assert set(got.graph.iter_rows()) == closure(expected.run, expected.counted)
        assert got.graph.height == got.account.edges_out == len(set(got.graph.iter_rows()))
        account = got.account
        assert account.verdict == expected.verdict
        assert account.missing == expected.missing
        assert (account.rejected, account.duplicates, account.discarded) == (
            expected.rejected,
            expected.duplicates,
            expected.discarded,
        )
        assert account.edges_in == len(expected.counted)
        assert len(got.rejected) == expected.rejected
        provenance = [m for m in expected.messages if m.headers["kind"] != MANIFEST]
        assert (account.messages, account.bytes) == (len(provenance), sum(len(m.value) for m in provenance))


@given(st.data(), st.booleans())
def test_contracting_locally_first_changes_nothing(data: st.DataObject, lake: bool) -> None:
    batches = data.draw(st.lists(steps(lake=lake), max_size=4))
    told = [flat(rename(batch, str(number))) for number, batch in enumerate(batches)]
    at_once = read_documents([write_document("r", edges) for edges in told])
    names_records = bool(summarise(at_once, len(told))[1].any())
    whole = np.ones(len(told), np.bool_)
    local = at_once._replace(edges=contract_locally(at_once.edges, at_once.ids.lo, whole))
    again = local._replace(edges=contract_locally(local.edges, local.ids.lo, whole))
    assert len(local.edges.document) <= len(at_once.edges.document)
    expected = pairs_of(at_once, names_records=names_records)
    assert pairs_of(local, names_records=names_records) == expected
    assert pairs_of(again, names_records=names_records) == expected


@given(steps(lake=True), st.randoms(use_true_random=False))
def test_batching_is_not_seen(drawn: list[list[Told]], random: Random) -> None:
    together = [Message({}, write_document("r", flat(drawn)))]
    apart = [Message({}, write_document("r", step)) for step in drawn]
    random.shuffle(apart)
    if not drawn:
        return
    (one,), (many,) = reduce_in_order(together), reduce_in_order(apart)
    assert one.graph.equals(many.graph)
    assert one.account.verdict == many.account.verdict == "unknown"


PREFIXES = ("lake", "l", "la", "run", "", "default", "a:b", "ü", "prov", "p" * 15, "p" * 16)
IDS = st.builds(
    "{}{}{}".format,
    st.sampled_from((*PREFIXES, "nope")),
    st.sampled_from((":", "")),
    st.sampled_from(("x", "yü", ":", "")),
)
ODD_ENDS = st.sampled_from([1, None, True, ["lake:x"], [], {"$": "lake:x", "type": "prov:QUALIFIED_NAME"}, {}])
# What JSON writes in several ways, and what is no JSON, put into the text by hand.
SPLICES = (
    b" ",
    b"\n\t",
    b"\\",
    b"\\u0061",
    b"\\ud800",
    b'"',
    b"\xff",
    b"\xc3",
    b"\0",
    b"\x1f",
    b"{",
    b"}",
    b",",
    b":",
    b"0",
    b"/**/",
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Documents of the plain kind and of every other, some of them damaged."""
    document: dict[str, object] = {}
    if draw(st.integers(0, 5)):
        some = st.sampled_from(["urn:lake:", "urn:", "", "urn:run:r:", "u" * 600])
        document["prefix"] = draw(st.dictionaries(st.sampled_from(PREFIXES), some, max_size=18))
    plain = draw(st.integers(0, 2)) > 0
    for relation, ends in RELATION_ENDS.items():
        record = st.fixed_dictionaries(dict.fromkeys(ends, IDS))
        if not plain:
            odd = st.fixed_dictionaries(dict.fromkeys(ends, IDS | ODD_ENDS), optional={"prov:role": st.just("x")})
            record = record | odd | st.lists(record, max_size=2) | st.just({})
        if draw(st.booleans()):
            keys = st.sampled_from(["_:1", "_:2", "_:10", "\u2028", ""])
            document[relation] = draw(st.dictionaries(keys, record, max_size=3))
    if draw(st.integers(0, 9)) == 0:
        document["entity"] = {"lake:x": {}}
    document = dict(draw(st.permutations(list(document.items()))))
    compact = (",", ":") if draw(st.booleans()) else None
    value = json.dumps(document, ensure_ascii=draw(st.booleans()), separators=compact).encode()
    return damage(draw, value) if draw(st.integers(0, 3)) == 0 else value


def damage(draw: st.DrawFn, value: bytes) -> bytes:
    """Cut the text short, leave something out, put something in, or let something stand twice."""
    begin, end = sorted((draw(st.integers(0, len(value))), draw(st.integers(0, len(value)))))
    ways = (
        value[:begin],
        value[:begin] + value[end:],
        value[:begin] + draw(st.sampled_from(SPLICES)) + value[begin:],
        value[:end] + value[begin:],
        value.replace(b"_:2", b"_:1"),
        value.replace(b'"wasDerivedFrom"', b'"used"').replace(b"prov:generatedEntity", b"prov:activity"),
        value.replace(b'"lake"', b'"run"'),
        value.replace(b"prov:activity", b"prov:entity"),
        value + b" ",
        b"\xef\xbb\xbf" + value,
    )
    return draw(st.sampled_from(ways))


def read_alone(value: bytes) -> tuple[list[Edge], str | None]:
    try:
        return read_document(value), None
    except DocumentError as error:
        return [], str(error)


@given(st.lists(documents(), max_size=5))
def test_many_documents_are_read_as_each_would_be_alone(values: list[bytes]) -> None:
    (document, relation, dependent, dependency), interned, reasons = read_documents(values)
    ids = interned.keep_all()
    names = to_strings(ids.starts, ids.stops).to_list()
    for number, value in enumerate(values):
        expected, reason = read_alone(value)
        assert reasons.get(number) == reason
        rows = (document == number).nonzero()[0]
        got = [Edge(RELATIONS[relation[row]], names[dependent[row]], names[dependency[row]]) for row in rows]
        assert Counter(got) == Counter(expected)
    assert len(names) == len(set(names)) == len(set(zip(ids.hi.tolist(), ids.lo.tolist(), strict=True)))
    assert ids.lake.tolist() == [name.startswith("urn:lake:") for name in names]


@given(st.lists(documents(), max_size=3), steps(lake=True))
def test_what_our_emitters_write_is_read_natively_whatever_stands_beside_it(
    others: list[bytes], drawn: list[list[Told]]
) -> None:
    buffer, starts, stops = pad([*others, write_document("r", flat(drawn)), *others])
    scanned = scan(buffer, starts, stops)
    assert scanned.taken[len(others)]
    assert (scanned.document == len(others)).sum() == len(flat(drawn))


LAKE_OR_NOT = st.binary(max_size=12) | st.integers(0, 9).map(lambda size: b"urn:lake:"[:size])


@given(
    st.lists(
        st.tuples(LAKE_OR_NOT, st.binary(max_size=30) | LAKE_OR_NOT.map(lambda begun: b"urn:lake:"[len(begun) :])),
        unique_by=b"".join,
        max_size=30,
    )
)
def test_an_id_is_known_by_its_expanded_text_alone(split: list[tuple[bytes, bytes]]) -> None:
    """However it is divided between namespace and rest, and whether or not it is met for the first time."""
    whole = [namespace + rest for namespace, rest in split]
    count = len(split)
    buffer, starts, stops = pad([*(namespace for namespace, _ in split), b"", *(rest for _, rest in split), *whole])
    spans = np.column_stack([starts, stops]) + buffer.ctypes.data
    namespaces, rests, alone = np.split(spans, [count + 1, 2 * count + 1])
    ends = np.vstack([np.column_stack([np.arange(count), rests]), np.column_stack([np.full(count, count), alone])])
    codes, interned = intern(ends, namespaces, (buffer,))
    assert codes.tolist() == [*range(count), *range(count)]
    ids = interned.keep_all()
    assert b"".join(buffer.tobytes() for buffer in ids.buffers).startswith(b"".join(whole))
    assert ids.lake.tolist() == [one.startswith(b"urn:lake:") for one in whole]
    for one, hi, lo in zip(alone, ids.hi, ids.lo, strict=True):
        first, second = siphash(one[0], one[1], 1, 3)
        assert (hi, lo | 1) == (np.uint64(first).astype(np.int64), np.uint64(second).astype(np.int64) | 1)


@given(st.lists(st.text("ab\0ü#\U0001f600", max_size=20), unique=True, max_size=60), st.text("ab\0", max_size=20))
def test_texts_are_sorted_as_python_sorts_them(texts: list[str], prefix: str) -> None:
    values = [prefix + text for text in texts]
    buffer, starts, stops = pad([value.encode() for value in values])
    order = sort_texts(starts + buffer.ctypes.data, stops + buffer.ctypes.data)
    assert [values[place] for place in order] == sorted(values)
    assert to_strings(starts + buffer.ctypes.data, stops + buffer.ctypes.data).to_list() == values
