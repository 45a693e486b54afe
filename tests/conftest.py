"""What every test shares: Hypothesis profiles, and settings that never reach a developer's own services."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from provenance_store.settings import load_settings

pytest_plugins = ["tests.services_fixtures", "tests.explorer_fixtures", "tests.spark_fixtures"]

# Most JVMs here live for seconds: to compile a little, quickly, takes a third less than to compile well.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

settings.register_profile("ci", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

TESTS = Path(__file__).parent
# What takes longest begins first, so that no core is left waiting for the other at the end.
LONGEST = ("system/", "browser/", "integration/reducer/", "integration/capture", "integration/", "property/", "")
# One process has the tests of a file, and all that meet one world which takes long to make.
WORLDS = {
    "system/": "airflow",
    "browser/": "explorer",
    "integration/explorer/": "explorer",
    "integration/capture/test_hadoop_yarn": "hadoop",
    "integration/purge/test_remote": "hadoop",
    "contract/test_storage": "hadoop",
}


class OneWorldInOneProcess(LoadScopeScheduling):
    """Hands out the tests of a world together, in the order in which worlds were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return world_of(nodeid.split("::", maxsplit=1)[0].removeprefix(f"{TESTS.name}/"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneWorldInOneProcess:
    """Not by marks, which xdist writes into ids where newer releases of pytest do not look for them."""
    return OneWorldInOneProcess(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hand out the files with the longest first."""
    items.sort(key=lambda item: next(number for number, begin in enumerate(LONGEST) if path_of(item).startswith(begin)))
    for item in items:
        if world_of(path_of(item)) == "airflow":  # two engines, a scheduler and two databases, beside other tests
            item.add_marker(pytest.mark.timeout(1500))


def path_of(item: pytest.Item) -> str:
    """The file of a test, from here."""
    return item.path.relative_to(TESTS).as_posix()


def world_of(path: str) -> str:
    """The world that the tests of a file meet: mostly one of their own."""
    return next((name for begin, name in WORLDS.items() if path.startswith(begin)), path)


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A HEADWATER_… variable or a headwater.toml of the person running the tests must not change their outcome."""
    for name in [name for name in os.environ if name.startswith("HEADWATER_")]:
        monkeypatch.delenv(name)
    load_settings.cache_clear()
