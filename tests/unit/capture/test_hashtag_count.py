"""The DIC's own functions."""

import pytest

from spark_apps.capture import counters
from spark_apps.dics.hashtag_count import add_up, find_hashtags


@pytest.mark.parametrize(
    ("line", "hashtags"),
    [
        ('{"text":"#Rain and #rain"}', ["rain", "rain"]),
        ('{"text":"C# a#b ## # #1"}', ["1"]),
        ('{"text":"#बारिश #雨! #straße #Über"}', ["बारिश", "雨", "strasse", "über"]),
        ('{"text":"none"}', []),
        ('{"text":"#a","handle":"x","more":[1]}', ["a"]),
    ],
)
def test_hashtags_are_found(line: str, hashtags: list[str]) -> None:
    assert list(find_hashtags(0, line)) == [(hashtag, "1") for hashtag in hashtags]


@pytest.mark.parametrize("line", ["", "no json", "[]", '{"text":1}', "{}", '{"text":"\udc80"}', '{"text":"#a'])
def test_what_is_no_tweet_is_counted(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    counters.flush()  # what tests before this one counted in the same process
    capsys.readouterr()
    assert list(find_hashtags(0, line)) == []
    counters.flush()
    assert "malformed tweets,1" in capsys.readouterr().err


def test_counts_add_up() -> None:
    assert list(add_up("a", iter(["1", "41"]))) == [("a", "42")]
