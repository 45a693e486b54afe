"""The generator: deterministic, of the paper's shape, with the distribution it says."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from provenance_store.errors import InputError
from provenance_store.lake import layout, tweets
from spark_apps.dics.hashtag_count import find_hashtags


def read(version: layout.Version) -> bytes:
    return b"".join(path.read_bytes() for path in version.files())


def test_the_same_seed_makes_the_same_lake(tmp_path: Path) -> None:
    told: list[int] = []
    one = tweets.generate(tmp_path / "1", count=500, seed=3, progress=told.append)
    other = tweets.generate(tmp_path / "2", count=500, seed=3)
    assert read(one) == read(other)
    assert read(one) != read(tweets.generate(tmp_path / "3", count=500, seed=4))
    assert read(layout.resolve(tmp_path / "1", "categories")) == read(layout.resolve(tmp_path / "2", "categories"))
    assert sum(told) == 500
    assert one.name == "n500-s3"


def test_making_it_again_is_harmless_and_another_under_its_name_is_refused(tmp_path: Path) -> None:
    made = tweets.generate(tmp_path, count=10, seed=1, version="mine")
    before = made.path.stat().st_mtime_ns
    assert tweets.generate(tmp_path, count=10, seed=1, version="mine") == made
    assert made.path.stat().st_mtime_ns == before
    with pytest.raises(InputError, match="never written again"):
        tweets.generate(tmp_path, count=11, seed=1, version="mine")


@pytest.mark.parametrize(("count", "files"), [(0, None), (1, None), (10, 3), (25_001, 2), (2, 5)])
def test_every_tweet_is_in_a_file(tmp_path: Path, count: int, files: int | None) -> None:
    made = tweets.generate(tmp_path, count=count, seed=1, files=files)
    assert len(read(made).splitlines()) == count
    if files:
        assert len(made.files()) == files


def test_tweets_look_as_they_should(tmp_path: Path) -> None:
    made = tweets.generate(tmp_path, count=20_000, seed=1)
    assert [path.name for path in made.files()] == ["part-00000.jsonl", "part-00001.jsonl"]
    lines = read(made).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert all(set(row) == {"handle", "time", "language", "text"} for row in rows)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["time"]) for row in rows)
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    found = [[tag for tag, _ in find_hashtags(0, line)] for line in lines]
    assert 0.38 < sum(not tags for tags in found) / len(found) < 0.42
    counts = Counter(tag for tags in found for tag in tags)
    assert 1.04 < counts.total() / len(lines) < 1.14
    ranked = [count for _, count in counts.most_common()]
    # Zipf: rank times count hardly changes.
    assert 5 < ranked[0] / ranked[9] < 20
    assert any(not tag.isascii() for tag in counts)
    categories = [json.loads(line) for line in read(layout.resolve(tmp_path, "categories")).decode().splitlines()]
    table = {row["hashtag"]: row["category"] for row in categories}
    assert set(table.values()) == set(tweets.CATEGORIES)
    share = sum(tag in table for tag in counts) / len(counts)
    assert 0.87 < share < 0.93


def test_impossible_counts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 or more"):
        tweets.generate(tmp_path, count=-1, seed=1)
    with pytest.raises(InputError, match="1 or more"):
        tweets.generate(tmp_path, count=1, seed=1, files=0)
