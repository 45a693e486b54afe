"""The hashtag count's combine and reduce as a plain streaming script. Imports nothing of ours."""

import sys
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter


def read() -> Iterator[list[bytes]]:
    """Pairs of hashtag and count."""
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\n").split(b"\t", 1)


def main() -> None:
    """A line `hashtag TAB sum` for every hashtag."""
    write = sys.stdout.buffer.write
    for hashtag, pairs in groupby(read(), key=itemgetter(0)):
        write(b"%b\t%d\n" % (hashtag, sum(int(count) for _, count in pairs)))


if __name__ == "__main__":
    main()
