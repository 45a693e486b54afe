"""The independent checks of the DICs say what brute force says."""

import gzip
import json
import re
import sys
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version
from spark_apps.dics.checks import category_totals, hashtag_count, order_report

EXAMPLES = settings(max_examples=60)
HASHTAGS = [
    "#a",
    "#A",
    "#ß",
    "#SS",
    "#हिन्दी",
    "#e\u0301",
    "C#",
    "#",
    "##x",
    "a#b",
    "_#c",
    "#x#y",
    "#ि#z",
    "#東京",
    "#½",
    " ",
]
TEXTS = st.lists(st.sampled_from(HASHTAGS) | st.text(max_size=3), max_size=6).map("".join)
STRANGE = st.sampled_from(
    [b"", b"{", b"[1]", b"null", b'{"text": 5}', b'{"handle": "#a"}', b'{"text": "#\xff"}', b'{"text": "\\ud800 #a"}']
)
WORDS = st.sampled_from(["a", "b", "c", "d"])


@contextmanager
def version_of(dataset: str, *files: Sequence[bytes]) -> Iterator[Version]:
    with tempfile.TemporaryDirectory() as folder:
        version = Version(dataset, "v", Path(folder) / dataset / "v")
        version.path.mkdir(parents=True)
        for number, lines in enumerate(files):
            content = b"".join(line + b"\n" for line in lines)
            name = f"part-{number}" + (".gz" if number % 2 else "")
            (version.path / name).write_bytes(gzip.compress(content) if number % 2 else content)
        yield version


def parts(text: str) -> Iterator[str]:
    """Hashtags, letter by letter."""
    at = 0
    while at < len(text):
        if text[at] == "#" and not (at and (text[at - 1].isalnum() or text[at - 1] == "_")):
            end = at + 1
            while end < len(text) and (text[end].isalnum() or text[end] == "_" or is_sign(text[end])):
                end += 1
            if end > at + 1:
                yield text[at + 1 : end].casefold()
            at = max(end, at + 1)
        else:
            at += 1


def is_sign(letter: str) -> bool:
    return "\u0300" <= letter <= "\u036f" or "\u0900" <= letter <= "\u0963" or "\u0966" <= letter <= "\u0dff"


@EXAMPLES
@given(st.lists(TEXTS, max_size=8), st.lists(STRANGE, max_size=3))
@example(["#हिन्दी#भारत #e\u0301#f #½"], [])
def test_hashtag_counts(texts: list[str], strange: list[bytes]) -> None:
    tweets = [json.dumps({"handle": "h", "text": text}).encode() for text in texts]
    with version_of("tweets", tweets[::2] + strange, tweets[1::2]) as version:
        made = hashtag_count.expect([version], Version("hashtag_counts", "r", version.path))
    assert dict(made.iter_rows()) == Counter(tag for text in texts for tag in parts(text))
    assert made.columns == ["hashtag", "count"]


def test_letters_are_those_of_python() -> None:
    letters = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) != "Cs"]
    found = pl.Series(letters).str.contains(f"^{hashtag_count._WORD}$").to_list()
    assert found == [re.fullmatch(r"\w", letter) is not None for letter in letters]


@EXAMPLES
@given(st.dictionaries(WORDS, st.integers(0, 50)), st.lists(st.tuples(WORDS, st.sampled_from(["x", "y"]))))
def test_category_totals(counts: dict[str, int], table: list[tuple[str, str]]) -> None:
    lines = [f"{tag}\t{count}".encode() for tag, count in counts.items()]
    rows = [json.dumps({"hashtag": tag, "category": category}).encode() for tag, category in table]
    totals: Counter[str] = Counter()
    for tag, category in table:
        if tag in counts:
            totals[category] += counts[tag]
    expected = {category: totals[category] for tag, category in table if tag in counts}
    with version_of("hashtag_counts", lines, [b""]) as counted, version_of("categories", rows) as categories:
        made = category_totals.expect([counted, categories], Version("category_totals", "r", counted.path))
    assert dict(made.iter_rows()) == expected
    assert made.columns == ["category", "total"]


CUSTOMERS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["AT", "DE", None]), st.sampled_from([True, True, False, None])),
    max_size=6,
)
ORDERS = st.lists(
    st.tuples(
        st.integers(0, 5) | st.none(),
        st.sampled_from(["paid", "cancelled", None]),
        st.integers(1, 3) | st.none(),
    ),
    max_size=14,
)


@EXAMPLES
@given(CUSTOMERS, ORDERS)
@example([(1, "AT", True)], [(1, "paid", None)])
@example([(1, "AT", True), (1, "AT", True)], [(1, "paid", 3)] * 5)
def test_order_report(customers, orders) -> None:
    numbered = [(number, *order) for number, order in enumerate(orders)]
    sold = defaultdict(list)
    for order, buyer, status, cents in numbered:
        for customer, country, confirmed in customers:
            if buyer == customer and confirmed and status not in {"cancelled", None}:
                sold[country].append((order, buyer, cents))
    totals = {
        (country, len(rows), len({buyer for _, buyer, _ in rows}), sum_of([cents for *_, cents in rows]))
        for country, rows in sold.items()
    }
    largest = [
        (country, place, order, cents)
        for country, rows in sold.items()
        for place, (order, _, cents) in enumerate(
            sorted(rows, key=lambda row: (-(row[2] or 0), row[2] is None, row[0]))[:3], start=1
        )
    ]
    with version_of("orders") as told, version_of("customers") as known:
        columns = {"order_id": pl.Int64, "customer_id": pl.Int64, "status": pl.String, "cents": pl.Int64}
        for number, part in enumerate((numbered[::2], numbered[1::2])):
            pl.DataFrame(part, columns, orient="row").write_parquet(told.path / f"{number}.parquet")
        columns = {"customer_id": pl.Int64, "country": pl.String, "confirmed": pl.Boolean}
        pl.DataFrame(customers, columns, orient="row").write_parquet(known.path / "0.parquet")
        inputs = [told, known]
        made = order_report.expect(inputs, Version("country_totals", "r", told.path))
        assert made.columns == ["country", "orders", "customers", "cents"]
        assert set(made.iter_rows()) == totals
        assert made.height == len(totals)
        top = order_report.expect(inputs, Version("top_orders", "r", told.path))
        assert Counter(top.iter_rows()) == Counter(largest)
        with pytest.raises(InputError, match="no dataset 'other'"):
            order_report.expect(inputs, Version("other", "r", told.path))


def sum_of(cents: list[int | None]) -> int | None:
    there = [one for one in cents if one is not None]
    return sum(there) if there else None
