"""The first DIC of paper 003: how often each hashtag occurs in the tweets, on Hadoop.

Reads `tweets` (JSON lines), writes `hashtag_counts` (`hashtag TAB count`). Upper and lower case are the same hashtag.
A line that is no tweet is skipped and counted.
"""

import re
import sys
from collections.abc import Iterator

import msgspec

from spark_apps.capture import counters
from spark_apps.capture.hadoop_job import HadoopJob

MALFORMED = "malformed tweets"
# Letters, digits and underscores, and the vowel signs of Indic scripts and accents, which Python's \w leaves out.
_HASHTAG = re.compile(r"(?<!\w)#([\w\u0300-\u036f\u0900-\u0963\u0966-\u0dff]+)")


class Tweet(msgspec.Struct):
    """What the count needs of a tweet."""

    text: str


_decoder = msgspec.json.Decoder(Tweet)


def find_hashtags(_: int, line: str) -> Iterator[tuple[str, str]]:
    """A pair `hashtag, 1` for every hashtag in a tweet."""
    try:
        tweet = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        counters.increment(MALFORMED)
        return
    if "#" in tweet.text:
        for hashtag in _HASHTAG.findall(tweet.text):
            yield hashtag.casefold(), "1"


def add_up(hashtag: str, counts: Iterator[str]) -> Iterator[tuple[str, str]]:
    """The sum of a hashtag's counts."""
    yield hashtag, str(sum(map(int, counts)))


JOB = HadoopJob(dic="hashtag-count", output="hashtag_counts", map=find_hashtags, combine=add_up, reduce=add_up)


if __name__ == "__main__":
    # Only the driver needs it; workers import this module too, and should start quickly.
    from spark_apps.capture.hadoop_main import main

    sys.exit(main("spark_apps.dics.hashtag_count:JOB", default_input="tweets"))
