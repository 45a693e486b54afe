"""Whether versions meet the suite of expectations that the catalogue names for their dataset."""

from collections.abc import Iterator

from provenance_store.health.finding import Fault
from provenance_store.lake.catalogue import Catalogue, list_all
from provenance_store.lake.layout import Version, resolve
from provenance_store.purge.expectations import check_suite
from provenance_store.settings import Settings


def check_version(settings: Settings, reference: str) -> list[Fault]:
    """The expectations that a version does not meet; one whose dataset names no suite is a fault of its own."""
    version = resolve(settings.lake, reference)
    suite = Catalogue.load(settings.lake).of(version.dataset).suite
    if suite is None:
        return [Fault(version.reference, f"the catalogue names no suite for {version.dataset!r}: name one there.")]
    return list(_check(settings, version, suite))


def check_newest(settings: Settings) -> Iterator[Fault]:
    """The expectations that the newest version of any dataset does not meet, of those that have a suite."""
    for listed in list_all(settings.lake):
        if listed.told is not None and listed.told.suite is not None and listed.versions:
            yield from _check(settings, resolve(settings.lake, listed.dataset), listed.told.suite)


def _check(settings: Settings, version: Version, suite: str) -> Iterator[Fault]:
    checked = check_suite(settings.lake / suite, version, Catalogue.load(settings.lake).of(version.dataset))
    for sentence in checked.failed:
        yield Fault(version.reference, f"{sentence} is not met ({suite}).")
