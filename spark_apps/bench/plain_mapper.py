"""The hashtag count's map as a plain streaming script: what a person writes who has no SDK. Imports nothing of ours."""

import re
import sys

import msgspec

_HASHTAG = re.compile(r"(?<!\w)#([\w\u0300-\u036f\u0900-\u0963\u0966-\u0dff]+)")


class Tweet(msgspec.Struct):
    """What the count needs of a tweet."""

    text: str


def main() -> None:
    """A line `hashtag TAB 1` for every hashtag."""
    decode = msgspec.json.Decoder(Tweet).decode
    find, write = _HASHTAG.findall, sys.stdout.buffer.write
    malformed = 0
    for line in sys.stdin.buffer:
        try:
            tweet = decode(line)
        except (msgspec.DecodeError, UnicodeError):
            malformed += 1
            continue
        if "#" in tweet.text:
            for hashtag in find(tweet.text):
                write(b"%b\t1\n" % hashtag.casefold().encode())
    sys.stderr.write(f"reporter:counter:Headwater,malformed tweets,{malformed}\n")


if __name__ == "__main__":
    main()
