import stat
from pathlib import Path

import pytest

from provenance_store.errors import SettingsError
from provenance_store.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_environment_beats_file_beats_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "headwater.toml").write_text('[kafka]\npartitions = 5\nbootstrap_servers = "file:1"\n')
    monkeypatch.setenv("HEADWATER_KAFKA__BOOTSTRAP_SERVERS", "env:2")
    settings = load_settings()
    assert settings.bootstrap_servers == "env:2"
    assert settings.kafka.partitions == 5
    assert settings.kafka.compression == "auto"


def test_the_defaults_mean_the_local_services() -> None:
    settings = load_settings()
    assert settings.bootstrap_servers == "127.0.0.1:9092"
    assert settings.neo4j_uri == "bolt://127.0.0.1:7687"


def test_remote_services_are_only_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KAFKA__BOOTSTRAP_SERVERS": "broker.example:9093",
        "KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA__SASL_USERNAME": "headwater",
        "KAFKA__SASL_PASSWORD": "tell-nobody",
        "NEO4J__URI": "neo4j+s://graph.example",
        "NEO4J__PASSWORD": "tell-nobody",
        "SPARK__MASTER": "spark://master.example:7077",
        "HADOOP__FRAMEWORK": "yarn",
    }.items():
        monkeypatch.setenv(f"HEADWATER_{name}", value)
    settings = load_settings()
    assert settings.neo4j_uri == "neo4j+s://graph.example"
    assert settings.neo4j_password() == "tell-nobody"
    assert "tell-nobody" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("HEADWATER_KAFKA__PARTITIONS", "none", "kafka.partitions"),
        ("HEADWATER_KAFKA__PARTITION", "3", "kafka.partition"),
        ("HEADWATER_SERVICES__NEO4J_PORT", "70000", "services.neo4j_port"),
        ("HEADWATER_CONFIG", "/no/such/file.toml", "no such file"),
    ],
)
def test_a_setting_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=reason):
        load_settings()


def test_a_file_that_is_not_toml_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text("kafka = [")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings()


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    key = settings.hmac_key()
    assert len(key) == 32
    assert Settings(home=tmp_path / "home").hmac_key() == key
    assert Settings(home=tmp_path / "other").hmac_key() != key
    (file,) = (tmp_path / "home" / "secrets").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_missing_password_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="headwater up neo4j"):
        Settings(home=tmp_path).neo4j_password()
