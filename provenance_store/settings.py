"""The one settings object: `headwater.toml`, then environment `HEADWATER_…`, over defaults that fit a laptop.

Every group is nested with two underscores in the environment: `HEADWATER_KAFKA__BOOTSTRAP_SERVERS=broker:9093`.
Remote Kafka, Neo4j, Spark and YARN are only settings; without them the local services of `headwater up` are meant.
"""

import json
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from provenance_store.errors import SettingsError
from provenance_store.storage.paths import RemotePath, parse

CHECKOUT = Path(__file__).resolve().parent.parent
LOOPBACK = "127.0.0.1"
_HDFS = "hdfs://"
_WEBHDFS_PORT = 9870
# The file that `read_settings` was told to read.
_config: ContextVar[str | None] = ContextVar("config", default=None)


def default_home() -> Path:
    """Where services keep data and logs: `.headwater` of the checkout, or of the user where there is no checkout."""
    return (CHECKOUT if (CHECKOUT / "pyproject.toml").exists() else Path.home()) / ".headwater"


class Group(BaseModel):
    """A named group of settings; a misspelt one is an error, not a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSettings(Group):
    """Where the broker is and how messages are sent to it."""

    bootstrap_servers: str | None = None
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    partitions: int = Field(default=2, ge=1)
    replication: int = Field(default=1, ge=1)
    retention_hours: int = Field(default=168, ge=1)
    # By itself each client takes what costs it least: lz4 in Python, zstd in a JVM.
    compression: Literal["auto", "none", "lz4", "zstd", "gzip"] = "auto"
    partitioning: Literal["horizontal", "vertical", "random"] = "vertical"
    timeout_seconds: float = Field(default=60.0, gt=0)


class Neo4jSettings(Group):
    """Where the lake graph is. A remote one speaks `neo4j+s://`."""

    uri: str | None = None
    user: str = "neo4j"
    password: SecretStr | None = None
    database: str = "neo4j"


class PurgeSettings(Group):
    """Who may approve purges that are asked for in Airflow: users of it, and never the one who asks."""

    approvers: list[str] = ["officer"]


class AuditSettings(Group):
    """Whether it is kept who asks what of the lake graph, and under which name."""

    enabled: bool = True
    # Who asks, where that is not the user that the process runs as: a service that asks for others says for whom.
    who: str | None = None


class RetentionSettings(Group):
    """How long the lake graph keeps runs, for `headwater prune`: for ever, unless said otherwise."""

    days: int | None = Field(default=None, ge=1, le=36500)


class SparkSettings(Group):
    """Which Spark runs the reducer and the Spark DICs."""

    master: str = "local[2]"
    driver_memory: str = "2g"
    conf: dict[str, str] = Field(default_factory=dict)


class ReducerSettings(Group):
    """How much the reducer takes at once, which bounds its memory whatever the size of a run."""

    messages_per_batch: int = Field(default=4000, ge=1)
    # A run of up to so many edges is contracted in one process; beyond, by the workers.
    edges_here: int = Field(default=300_000, ge=0)
    # Of a stream that never ends, so many edges may wait for more.
    edges_carried: int = Field(default=5_000_000, ge=0)
    # What the service keeps of a finished run, so that late messages can still be added to its graph.
    keep_finished_hours: float = Field(default=24.0, ge=0)
    # Where metrics are served, on this machine alone; 0 takes any free port.
    metrics_port: int | None = Field(default=None, ge=0, le=65535)


class StreamSettings(Group):
    """How stream queries run."""

    # Over so many tasks the lanes of a query can be spread; decided when a run begins.
    buckets: int = Field(default=8, ge=1, le=1000)
    # After every so many steps the state is kept, to replay from; and so many of the last states are.
    checkpoint_every: int = Field(default=10, ge=1)
    checkpoints: int = Field(default=20, ge=1)


class HadoopSettings(Group):
    """Which Hadoop runs the streaming DICs: in this process tree, on `headwater up hadoop`, or on a remote YARN."""

    framework: Literal["local", "yarn"] = "local"
    conf_dir: Path | None = None
    conf: dict[str, str] = Field(default_factory=dict)
    # Where the namenode of a lake on HDFS answers over HTTP; port 9870 of its host, unless told.
    webhdfs: str | None = None


class ServiceSettings(Group):
    """The local services that `headwater up` starts, all on loopback."""

    kafka_port: int = Field(default=9092, ge=1, le=65535)
    kafka_controller_port: int = Field(default=9093, ge=1, le=65535)
    kafka_heap: str = "512m"
    neo4j_port: int = Field(default=7687, ge=1, le=65535)
    neo4j_heap: str = "1g"
    neo4j_page_cache: str = "1g"
    hadoop_namenode_port: int = Field(default=8020, ge=1, le=65535)
    hadoop_webhdfs_port: int = Field(default=9870, ge=1, le=65535)
    hadoop_resourcemanager_port: int = Field(default=8032, ge=1, le=65535)
    hadoop_history_port: int = Field(default=10020, ge=1, le=65535)
    airflow_port: int = Field(default=8080, ge=1, le=65535)
    airflow_dags: Path = CHECKOUT / "dags"
    # How many tasks run at once. One that waits for a run to be reduced takes no part of it.
    airflow_parallelism: int = Field(default=2, ge=1)
    start_timeout_seconds: float = Field(default=120.0, gt=0)


class Settings(BaseSettings):
    """All that can be configured. Build it with `load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix="HEADWATER_", env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
    )

    home: Path = Field(default_factory=default_home)
    jvm: Path = Field(default_factory=lambda: default_home() / "jvm")
    # Set, jobs write recordings into this folder instead of sending to Kafka.
    recordings: Path | None = None
    kafka: KafkaSettings = KafkaSettings()
    neo4j: Neo4jSettings = Neo4jSettings()
    audit: AuditSettings = AuditSettings()
    retention: RetentionSettings = RetentionSettings()
    purge: PurgeSettings = PurgeSettings()
    spark: SparkSettings = SparkSettings()
    reducer: ReducerSettings = ReducerSettings()
    streams: StreamSettings = StreamSettings()
    hadoop: HadoopSettings = HadoopSettings()
    services: ServiceSettings = ServiceSettings()
    # A folder, or the address of one elsewhere. Behind the others, which tell how HDFS is reached.
    lake: Path = Field(default_factory=lambda: default_home() / "lake")

    @field_validator("lake", mode="wrap")
    @classmethod
    def _find_lake(cls, told: Any, read: ValidatorFunctionWrapHandler, others: ValidationInfo) -> Path:
        if isinstance(told, RemotePath):
            return told
        address = _over_http(told, others.data) if isinstance(told, str) else ""
        path: Path = parse(address) or read(told)
        return path

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments beat the environment, the environment beats the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, settings_file())

    @property
    def bootstrap_servers(self) -> str:
        """The configured broker, or the local one."""
        return self.kafka.bootstrap_servers or f"{LOOPBACK}:{self.services.kafka_port}"

    @property
    def neo4j_uri(self) -> str:
        """The configured Neo4j, or the local one."""
        return self.neo4j.uri or f"bolt://{LOOPBACK}:{self.services.neo4j_port}"

    @property
    def neo4j_password_file(self) -> Path:
        """Where the generated password of the local Neo4j is kept, readable by its owner alone."""
        return self.home / "secrets" / "neo4j-password"

    def neo4j_password(self) -> str:
        """The configured password, or the one generated for the local Neo4j."""
        if self.neo4j.password is not None:
            return self.neo4j.password.get_secret_value()
        if self.neo4j.uri is not None:
            raise SettingsError(
                f"Neo4j at {self.neo4j.uri} needs a password: set HEADWATER_NEO4J__PASSWORD or [neo4j] password."
            )
        if not self.neo4j_password_file.exists():
            raise SettingsError(
                "The local Neo4j has no password yet: run `headwater up neo4j`, "
                "or set HEADWATER_NEO4J__URI and HEADWATER_NEO4J__PASSWORD for a remote one."
            )
        return self.neo4j_password_file.read_text().strip()

    @property
    def hmac_key_file(self) -> Path:
        """Where the keys of `hmac_keys` are kept, one a line, readable by their owner alone."""
        return self.home / "secrets" / "hmac-key"

    def hmac_keys(self) -> list[bytes]:
        """The keys under which personal keys are hashed into ids, the newest first, which is made on first use."""
        lines = read_or_make_secret(self.hmac_key_file, lambda: secrets.token_hex(32)).splitlines()
        return [bytes.fromhex(line) for line in lines]

    def hmac_key(self) -> bytes:
        """The newest of them."""
        return self.hmac_keys()[0]


def _over_http(lake: str, others: Mapping[str, Any]) -> str:
    """The address of a lake on HDFS as it is reached; any other as it is."""
    if not lake.startswith(_HDFS):
        return lake
    namenode, slash, folder = lake.removeprefix(_HDFS).partition("/")
    hadoop, services = others.get("hadoop", HadoopSettings()), others.get("services", ServiceSettings())
    if not (namenode or hadoop.webhdfs):
        return lake
    ours = namenode == f"{LOOPBACK}:{services.hadoop_namenode_port}"
    port = services.hadoop_webhdfs_port if ours else _WEBHDFS_PORT
    address = hadoop.webhdfs or f"{namenode.partition(':')[0]}:{port}"
    return f"webhdfs://{address}{slash}{folder}"


def settings_file() -> Path:
    """`$HEADWATER_CONFIG`, else `headwater.toml` in the working directory."""
    named = _config.get() or os.environ.get("HEADWATER_CONFIG")
    if named and not Path(named).is_file():
        raise SettingsError(f"HEADWATER_CONFIG names {named}, and there is no such file.")
    return Path(named or "headwater.toml")


@cache
def load_settings() -> Settings:
    """Read file and environment once; every mistake in them is named in one error."""
    return read_settings()


def find_lake(told: str | None) -> Path:
    """The lake that a person names, a folder or an address; that of the settings where none is named."""
    return load_settings().lake if told is None else read_settings(lake=told).lake


def read_settings(config: Path | None = None, **given: Any) -> Settings:
    """Read file and environment; another file where one is named, and what is `given` before both."""
    chosen = _config.set(None if config is None else str(config))
    try:
        return Settings(**given)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False)]
        raise SettingsError("These settings cannot be used:\n" + "\n".join(lines)) from None
    except SettingsError:
        raise
    except ValueError as error:  # tomllib.TOMLDecodeError, and JSON in an environment variable
        raise SettingsError(f"The settings cannot be read: {error}") from None
    finally:
        _config.reset(chosen)


def as_environment(settings: Settings) -> dict[str, str]:
    """The variables under which another process loads the same settings, whatever file lies in its working directory.

    Secrets are among them, so they are for processes of our own.
    """
    told: dict[str, str] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Group):
            told[f"HEADWATER_{name.upper()}"] = json.dumps(value.model_dump(), default=_plain)
        elif value is not None:
            told[f"HEADWATER_{name.upper()}"] = str(value.absolute() if isinstance(value, Path) else value)
    return told


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def read_or_make_secret(path: Path, make: Callable[[], str]) -> str:
    """The secret in `path`, made on first use. Safe when two processes meet: the first to link its file wins."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mine = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(make() + "\n")
            with suppress(FileExistsError):
                os.link(mine, path)
        finally:
            mine.unlink()
    return path.read_text().strip()
