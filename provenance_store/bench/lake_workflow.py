"""The tweet workflow's reduced graphs, made directly: hashtag count over tweets, then category totals over counts.

Three hashtags a tweet on average, drawn by Zipf's law as in `headwater generate tweets`: a million records have three
million edges and outputs have from one input to hundreds of thousands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from provenance_store.lake.tweets import VOCABULARY, ZIPF_EXPONENT
from provenance_store.model.account import Account

CATEGORIES = 24
_COUNTS = "hashtag-count-2026-01-02T07-00-00Z"
_TOTALS = "category-totals-2026-01-02T08-00-00Z"
_TWEETS = "lake:tweets/collected-2026-01-02T06-00-00Z/day=2026-01-02/hour=06"
_TWEETS_PER_FILE = 5_000
_TWEET_BYTES = (180, 520)
_MOST_HASHTAGS = 5
_LINE_BYTES = 15
_REDUCERS = 8


@dataclass(frozen=True)
class LakeWorkflow:
    """So many tweets, each with a hashtag at least, and what the two DICs made of them."""

    tweets: int
    seed: int = 1

    @cached_property
    def counts(self) -> pl.DataFrame:
        """Which hashtag's count was made from which tweets: columns output and input, sorted as a reducer does."""
        random = np.random.default_rng(self.seed)
        shares = np.cumsum(1 / np.arange(1, VOCABULARY + 1) ** ZIPF_EXPONENT)
        numbers = random.integers(1, _MOST_HASHTAGS + 1, self.tweets)
        hashtags = np.searchsorted(shares / shares[-1], random.random(int(numbers.sum())))
        tweets = np.repeat(np.arange(self.tweets), numbers)
        offsets = np.cumsum(random.integers(*_TWEET_BYTES, self.tweets))
        pairs = pl.DataFrame({"hashtag": hashtags, "file": tweets // _TWEETS_PER_FILE, "offset": offsets[tweets]})
        return (
            pairs.unique()
            .select(
                output=_count("hashtag"),
                input=pl.format(_TWEETS + "/part-{}.jsonl#{}", _numbered("file"), "offset"),
            )
            .sort("input", "output")
        )

    @cached_property
    def totals(self) -> pl.DataFrame:
        """Which category's total was made from which counts, likewise."""
        hashtags = pl.DataFrame({"hashtag": np.arange(VOCABULARY)})
        edges = hashtags.select(
            output=pl.format(f"lake:category_totals/{_TOTALS}/part-00000#{{}}", pl.col("hashtag") % CATEGORIES),
            input=_count("hashtag"),
        )
        return edges.join(self.counts.select("output").unique(), left_on="input", right_on="output").sort(
            "input", "output"
        )

    def write(self, folder: Path) -> Sequence[Path]:
        """A folder for each run, as `headwater reduce` writes it."""
        runs = {_COUNTS: ("hashtag-count", self.counts), _TOTALS: ("category-totals", self.totals)}
        for run, (dic, edges) in runs.items():
            (folder / run).mkdir(parents=True)
            edges.write_parquet(folder / run / "graph.parquet")
            _account(run, dic, edges.height).write(folder / run)
        return [folder / run for run in runs]


def _count(hashtag: str) -> pl.Expr:
    place = _numbered(pl.col(hashtag) % _REDUCERS)
    return pl.format(f"lake:hashtag_counts/{_COUNTS}/part-{{}}#{{}}", place, pl.col(hashtag) * _LINE_BYTES)


def _numbered(column: str | pl.Expr) -> pl.Expr:
    expression = pl.col(column) if isinstance(column, str) else column
    return expression.cast(pl.String).str.zfill(5)


def _account(run: str, dic: str, edges: int) -> Account:
    return Account(
        run=run,
        dic=dic,
        verdict="complete",
        messages=1,
        bytes=0,
        edges_in=edges,
        edges_local=edges,
        edges_out=edges,
        duplicates=0,
        discarded=0,
        rejected=0,
        missing={},
        seconds=0.0,
    )
