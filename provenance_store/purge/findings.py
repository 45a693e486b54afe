"""What a verification found: a sentence each, with its counts, in which nothing personal is."""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. It passed or not, or could not be looked at: then `passed` is None."""

    name: str
    passed: bool | None
    counts: dict[str, int]
    sentence: str
