"""What is left of sums when what deleted inputs added is taken away, as the catalogue's `sums` allow."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset
from provenance_store.lake.columns import splitter
from provenance_store.purge.matching import Found


def take_away(told: Dataset, old: Iterable[Found], added: Sequence[bytes]) -> list[bytes]:
    """The old lines, less what was added by inputs that go away; without those of which nothing is left."""
    of_key, of_sums = ([told.columns.index(name) for name in names] for names in (told.key, told.sums))
    gone: defaultdict[tuple[bytes, ...], list[int]] = defaultdict(lambda: [0] * len(of_sums))
    divide = _divider(told)
    for fields in map(divide, added):
        sums = gone[tuple(fields[place] for place in of_key)]
        for number, value in enumerate(_numbers(fields, of_sums)):
            sums[number] += value
    mark, left = (told.divides_at or "").encode(), []
    for line in (line for found in old for line in found.records):
        fields = divide(line)
        less = gone.get(tuple(fields[place] for place in of_key))
        if less is None:  # it was told to depend on what goes away, and got nothing of it
            left.append(line)
            continue
        values = [value - taken for value, taken in zip(_numbers(fields, of_sums), less, strict=True)]
        if any(values):
            for place, value in zip(of_sums, values, strict=True):
                fields[place] = str(value).encode()
            left.append(mark.join(fields))
    return left


def _divider(told: Dataset) -> Callable[[bytes], list[bytes]]:
    split = splitter(told)

    def divide(line: bytes) -> list[bytes]:
        fields = split(line)
        if fields is None:
            raise InputError("A line cannot be divided into its columns: `headwater catalogue check` names it.")
        return list(fields)

    return divide


def _numbers(fields: Sequence[bytes], places: Sequence[int]) -> list[int]:
    try:
        return [int(fields[place]) for place in places]
    except ValueError:
        raise InputError("A column that the catalogue tells to be a sum holds no whole number.") from None
