"""What every test shares: Hypothesis profiles, and settings that never reach a developer's own services."""

import os

import pytest
from hypothesis import HealthCheck, settings

from provenance_store.settings import load_settings

pytest_plugins = ["tests.services_fixtures", "tests.spark_fixtures"]

settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A HEADWATER_… variable or a headwater.toml of the person running the tests must not change their outcome."""
    for name in [name for name in os.environ if name.startswith("HEADWATER_")]:
        monkeypatch.delenv(name)
    load_settings.cache_clear()
