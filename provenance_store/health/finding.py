"""What a look at the lake found: a sentence each, in which nothing personal is."""

from collections.abc import Iterable

import msgspec

from provenance_store.errors import InputError


class Fault(msgspec.Struct, frozen=True):
    """Something that is not as it should be: what it is about, and a sentence."""

    about: str
    sentence: str


def refuse(what: str, faults: Iterable[Fault]) -> None:
    """InputError that tells all faults, where there are any."""
    found = [f"  {fault.about}: {fault.sentence}" for fault in faults]
    if found:
        raise InputError(f"{what} did not pass:\n" + "\n".join(found))
