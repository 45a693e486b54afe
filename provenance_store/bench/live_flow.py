"""Results with ready-made provenance, as the synthetic experiments of paper 004 feed them.

A result is of a window over sources one millisecond apart, and the next one shares so much of its provenance.
"""

from collections.abc import Iterator

import msgspec

from provenance_store.streams.live import Result


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """So many sources a result, so many percent of them shared with the result before, by so many queries at once."""

    size: int
    overlap: int = 0
    queries: int = 1

    @property
    def reach(self) -> int:
        """U: a result lies behind all of its window."""
        return self.size

    @property
    def advance(self) -> int:
        """How many sources further the next window begins."""
        return max(1, self.size - self.size * self.overlap // 100)

    def steps(self, results: int, step: int, queries: range | None = None) -> Iterator[tuple[int, list[Result]]]:
        """So many results of each query, in steps of up to so many of each, with the watermark behind each step."""
        chosen = range(self.queries) if queries is None else queries
        for first in range(0, results, step):
            numbers = range(first, min(first + step, results))
            yield self._time(numbers[-1]) + 1, [self._result(query, number) for number in numbers for query in chosen]

    def alive_after(self, number: int) -> set[str]:
        """The sources of a result that later ones are made from too."""
        first = (number + 1) * self.advance
        return {_source(query, at) for query in range(self.queries) for at in range(first, self._time(number))}

    def _time(self, number: int) -> int:
        return number * self.advance + self.size

    def _result(self, query: int, number: int) -> Result:
        time = self._time(number)
        sources = [(_source(query, at), at) for at in range(time - self.size, time)]
        return Result(f"lake:alerts-{query}/bench/part-00000.jsonl#{96 * number}", time, sources)


def _source(query: int, at: int) -> str:
    return f"lake:readings-{query}/bench/part-00000.jsonl#{128 * at}"
