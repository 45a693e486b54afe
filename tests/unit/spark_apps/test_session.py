from pathlib import Path

import pytest
from pydantic import SecretStr

from provenance_store.errors import SettingsError
from provenance_store.settings import KafkaSettings, Settings
from spark_apps.session import kafka_source_options


def test_the_jvm_client_is_told_who_and_how(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("KEY")
    kafka = KafkaSettings(
        bootstrap_servers="broker:9093",
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="ann",
        sasl_password=SecretStr('a"b\\c'),
        ssl_cafile=tmp_path / "ca.pem",
        ssl_certfile=tmp_path / "key.pem",
    )
    options = kafka_source_options(Settings(kafka=kafka))
    assert options["kafka.bootstrap.servers"] == "broker:9093"
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert options["kafka.sasl.jaas.config"].endswith('ScramLoginModule required username="ann" password="a\\"b\\\\c";')
    assert options["kafka.ssl.truststore.location"] == str(tmp_path / "ca.pem")
    assert options["kafka.ssl.keystore.key"] == "KEY"


def test_sasl_without_a_name_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(SettingsError, match="SASL_USERNAME"):
        kafka_source_options(Settings(kafka=KafkaSettings(security_protocol="SASL_PLAINTEXT")))
