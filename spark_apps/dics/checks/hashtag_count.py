"""How often each hashtag occurs in tweets, upper and lower case being the same.

A hashtag is a `#` that stands behind no letter, digit or underscore, and what follows of these, of accents and of the
signs of Indic scripts.
"""

import unicodedata
from collections.abc import Iterator, Sequence

import polars as pl

from provenance_store.lake.layout import Version
from spark_apps.dics.checks.reading import blocks_of_lines, read_json

# Letters that a later Unicode brings are none yet for the Python that counts.
_WORD = rf"[\p{{L}}\p{{N}}_&&\p{{age:{unicodedata.unidata_version.removesuffix('.0')}}}]"
_WITHIN_WORD = rf"({_WORD})#"
_HASHTAG = rf"#[{_WORD}\x{{300}}-\x{{36f}}\x{{900}}-\x{{963}}\x{{966}}-\x{{dff}}]+"


def expect(inputs: Sequence[Version], _: Version) -> pl.DataFrame:
    """All counts that the version should hold."""
    counts = _count(_texts([]))
    for version in inputs:
        for lines in blocks_of_lines(version):
            counts = _add_up(pl.concat([counts, _count(_texts(lines))]))
    return counts


def _texts(lines: list[bytes]) -> pl.Series:
    return pl.Series(list(_read(lines)), dtype=pl.String)


def _read(lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        tweet = read_json(line)
        text = tweet.get("text") if tweet is not None else None
        if isinstance(text, str) and _is_text(text):
            yield text


def _count(texts: pl.Series) -> pl.DataFrame:
    begun = texts.str.replace_all(_WITHIN_WORD, "${1} ")
    spelt = begun.str.extract_all(_HASHTAG).explode(empty_as_null=False).value_counts(name="count")
    # Each spelling once, as Python folds cases: `ß` and `ss` are the same.
    folded = pl.Series("hashtag", [tag[1:].casefold() for tag in spelt.to_series(0)], dtype=pl.String)
    return _add_up(pl.DataFrame([folded, spelt["count"].cast(pl.Int64)]))


def _add_up(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.group_by("hashtag").agg(pl.col("count").sum())


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell and no text holds
        return False
    return True
