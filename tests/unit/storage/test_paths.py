"""How a lake elsewhere is named; nothing here reaches one."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import InputError, SettingsError, StorageError
from provenance_store.lake import tweets
from provenance_store.settings import HadoopSettings, Settings, find_lake, load_settings
from provenance_store.storage.paths import RemotePath, parse
from spark_apps.capture.hadoop import run_job


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("s3://bucket/lake", "s3://bucket/lake"),
        ("s3://bucket/deep/lake/", "s3://bucket/deep/lake"),
        ("s3://bucket", "s3://bucket"),
        ("webhdfs://nn.example:50070/lake", "webhdfs://nn.example:50070/lake"),
        ("hdfs://nn.example:8020/lake", "webhdfs://nn.example:9870/lake"),
        ("hdfs://nn.example/lake", "webhdfs://nn.example:9870/lake"),
        ("hdfs://127.0.0.1:8020/lake", "webhdfs://127.0.0.1:9871/lake"),
    ],
)
def test_addresses(told: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The cluster of `headwater up hadoop` is known by its own ports.
    monkeypatch.setenv("HEADWATER_SERVICES__HADOOP_WEBHDFS_PORT", "9871")
    monkeypatch.setenv("HEADWATER_LAKE", told)
    assert isinstance(load_settings().lake, RemotePath)
    assert str(load_settings().lake) == str(find_lake(told)) == str(find_lake(None)) == meant


def test_where_webhdfs_answers_can_be_told() -> None:
    settings = Settings(lake="hdfs://cluster/lake", hadoop=HadoopSettings(webhdfs="nn1.example:14000"))
    assert str(settings.lake) == "webhdfs://nn1.example:14000/lake"


def test_folders_stay_folders(tmp_path: Path) -> None:
    for told in (tmp_path, str(tmp_path)):
        assert type(Settings(lake=told).lake) is type(tmp_path)
        assert Settings(lake=told).lake == tmp_path
    assert parse("data/lake") is None


@pytest.mark.parametrize("told", ["gs://bucket/lake", "s3://", "s3:///lake", "file:///lake", "hdfs:///lake"])
def test_what_is_no_place_for_a_lake_is_told(told: str) -> None:
    with pytest.raises(SettingsError, match="is no place for a lake: use a folder, s3://bucket/folder"):
        find_lake(told)


def test_a_cluster_that_does_not_answer_is_named() -> None:
    hdfs = find_lake("webhdfs://127.0.0.1:9/lake")
    with pytest.raises(StorageError, match=r"HDFS at http://127\.0\.0\.1:9/webhdfs/v1 did not do what was asked"):
        hdfs.exists()


def test_dics_and_generators_refuse_a_lake_elsewhere() -> None:
    settings = Settings(lake="s3://bucket/lake")
    with pytest.raises(InputError, match="DICs run on a local lake, and s3://bucket/lake is not on this machine"):
        tweets.generate(settings.lake, count=1, seed=1)
    with pytest.raises(InputError, match="DICs run on a local lake"):
        run_job("spark_apps.dics.hashtag_count:JOB", settings=settings, run="r1", inputs=["tweets"])
    done = CliRunner().invoke(app, ["generate", "tweets", "--count=1", "--seed=1", "--out=s3://bucket/lake"])
    assert done.exit_code == 1
    assert "DICs run on a local lake" in str(done.exception or done.output)
