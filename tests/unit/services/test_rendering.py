import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from provenance_store.cli.services import app
from provenance_store.errors import InputError
from provenance_store.services import hadoop, jvm, registry
from provenance_store.services.hadoop import Hadoop
from provenance_store.services.kafka import Kafka
from provenance_store.services.neo4j import Neo4j
from provenance_store.settings import KafkaSettings, Neo4jSettings, ServiceSettings, Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    chosen = ServiceSettings(kafka_port=1111, kafka_controller_port=1112, neo4j_port=1113, neo4j_heap="300m")
    return Settings(home=tmp_path, services=chosen, kafka=KafkaSettings(retention_hours=5, partitions=3))


def test_kafka_listens_on_loopback_and_creates_no_topics(settings: Settings) -> None:
    told = Kafka(settings).properties()
    assert told["listeners"] == "CLIENT://127.0.0.1:1111,CONTROLLER://127.0.0.1:1112"
    assert told["auto.create.topics.enable"] == "false"
    assert told["message.max.bytes"] == 2 * 1024 * 1024
    assert (told["log.retention.hours"], told["num.partitions"]) == (5, 3)
    assert told["log.dirs"] == str(settings.home / "services" / "kafka" / "data")


def test_neo4j_listens_on_loopback_with_a_password_and_reports_nothing(settings: Settings) -> None:
    told = Neo4j(settings).configuration()
    assert told["server.bolt.listen_address"] == "127.0.0.1:1113"
    assert told["dbms.security.auth_enabled"] == "true"
    assert told["dbms.usage_report.enabled"] == "false"
    assert told["server.http.enabled"] == "false"


def test_the_password_is_on_stdin_only(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "java", lambda: "java")
    monkeypatch.setattr(jvm, "classpath", lambda *_: "lib/*")
    service = Neo4j(settings)
    launch, password = service.launch(), settings.neo4j_password()
    assert launch.stdin == password
    assert password not in " ".join(launch.argv)
    assert "-Xmx300m" in launch.argv
    assert settings.neo4j_password_file.stat().st_mode & 0o777 == 0o600


def test_which_password_the_local_neo4j_gets(tmp_path: Path) -> None:
    chosen = Neo4j(Settings(home=tmp_path, neo4j=Neo4jSettings(password="chosen-by-hand")))
    assert chosen.password() == "chosen-by-hand"
    remote = Neo4j(Settings(home=tmp_path, neo4j=Neo4jSettings(password="the-remote-one", uri="neo4j+s://far")))
    assert remote.password() != "the-remote-one"
    assert remote.configured_elsewhere == "HEADWATER_NEO4J__URI"


def test_hadoop_clients_find_the_cluster(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "classpath", lambda *_: "/a&b/*")
    sites = Hadoop(settings).sites({"yarn.resourcemanager.scheduler.address": "127.0.0.1:5"})
    assert sites["core-site.xml"]["fs.defaultFS"] == "hdfs://127.0.0.1:8020"
    assert sites["yarn-site.xml"]["yarn.resourcemanager.scheduler.address"] == "127.0.0.1:5"
    assert sites["mapred-site.xml"]["mapreduce.framework.name"] == "yarn"
    assert "<value>/a&amp;b/*</value>" in hadoop._as_xml(sites["mapred-site.xml"])


def test_the_table(settings: Settings) -> None:
    assert [service.name for service in registry.services(settings)] == ["kafka", "neo4j", "hadoop", "airflow"]
    assert [service.name for service in registry.services(settings, ["neo4j", "kafka", "kafka"])] == ["kafka", "neo4j"]
    with pytest.raises(InputError, match=r"no service mongo.*kafka, neo4j, hadoop"):
        registry.services(settings, ["mongo"])


def test_status_for_people_and_for_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "home"))
    load_settings.cache_clear()
    try:
        rows = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
        told = CliRunner().invoke(app, ["status", "kafka"]).stdout
        stopped = CliRunner().invoke(app, ["down"]).stdout
    finally:
        load_settings.cache_clear()
    assert [(row["name"], row["state"], row["pid"]) for row in rows] == [
        ("kafka", "stopped", None),
        ("neo4j", "stopped", None),
        ("hadoop", "stopped", None),
        ("airflow", "stopped", None),
    ]
    assert "127.0.0.1:9092" in told
    assert "neo4j" not in told.splitlines()[1].split()
    assert len(stopped.splitlines()) == 4
    assert not (tmp_path / "home").exists()


def test_compose_binds_to_loopback_and_demands_a_password() -> None:
    text = (jvm.INFRA / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    assert set(services) == {"kafka", "neo4j"}
    assert all(port.startswith("127.0.0.1:") for service in services.values() for port in service["ports"])
    assert "${HEADWATER_NEO4J__PASSWORD:?" in text
