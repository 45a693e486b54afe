import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from provenance_store.settings import KafkaSettings, Neo4jSettings, Settings, SparkSettings, as_environment

LOAD = "from provenance_store.settings import load_settings; print(load_settings().model_dump_json())"


def test_another_process_loads_the_same_settings_whatever_lies_there(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text('lake = "/elsewhere"\n[kafka]\npartitions = 9\n')
    settings = Settings(
        home=tmp_path / "home",
        lake=Path("lake"),
        kafka=KafkaSettings(sasl_password=SecretStr("of kafka"), timeout_seconds=3.5),
        neo4j=Neo4jSettings(uri="neo4j+s://graph.example", password=SecretStr("of neo4j")),
        spark=SparkSettings(conf={"spark.executor.memory": "8g"}),
    )
    environment = as_environment(settings)
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD],
        env={"PATH": "", **environment, **_path()},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    there = json.loads(loaded.stdout)
    here = json.loads(settings.model_copy(update={"lake": settings.lake.absolute()}).model_dump_json())
    assert there == here
    assert json.loads(environment["HEADWATER_NEO4J"])["password"] == "of neo4j"
    assert json.loads(environment["HEADWATER_KAFKA"])["sasl_password"] == "of kafka"


def _path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(filter(None, sys.path))}


@pytest.mark.parametrize("name", ["HEADWATER_RECORDINGS"])
def test_what_is_not_set_is_not_told(name: str, tmp_path: Path) -> None:
    assert name not in as_environment(Settings(home=tmp_path))
