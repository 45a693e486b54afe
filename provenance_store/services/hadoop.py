"""Hadoop: HDFS, YARN and the job history server in one process, for streaming jobs on a real cluster.

`client_conf_dir` is what a job client needs: put it first on the client's class path.
"""

import html
import os
import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from provenance_store.services import jvm
from provenance_store.services.ports import accepts
from provenance_store.services.process import PROC, identify, pids
from provenance_store.services.service import Identity, Launch, Say, Service
from provenance_store.settings import LOOPBACK, Settings

_HEAP = "1g"
_OPEN = "--add-opens=java.base/java.lang=ALL-UNNAMED"  # Guice generates classes there
_CONTAINER = re.compile(r"/usercache/[^/]+/appcache/application_\d+_\d+/container_\w+")
# Nobody needs to know these ports beforehand, but clients need to know them: free ones are chosen at each start.
_CHOSEN_PORTS = (
    "yarn.resourcemanager.scheduler.address",
    "yarn.resourcemanager.resource-tracker.address",
    "yarn.resourcemanager.admin.address",
    "yarn.resourcemanager.webapp.address",
    "mapreduce.jobhistory.webapp.address",
    "mapreduce.jobhistory.admin.address",
)
Properties = Mapping[str, str | int]


def client_conf_dir(settings: Settings) -> Path:
    """The folder with the `*-site.xml` for clients of the local cluster; filled when the cluster starts."""
    return Hadoop(settings).folder / "conf"


def streaming_jar(settings: Settings) -> Path:
    """The jar of Hadoop streaming, for the local cluster as well as for `LocalJobRunner` on pyspark's jars."""
    return next(jar for jar in jvm.jars(settings, "hadoop") if jar.name.startswith("hadoop-streaming-"))


class Hadoop(Service):
    """The local cluster, started on request only."""

    name = "hadoop"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._addresses: dict[str, str] = {}

    @property
    def ports(self) -> Mapping[str, int]:
        """HDFS, YARN and the history server."""
        chosen = self.settings.services
        return {
            "hadoop_namenode_port": chosen.hadoop_namenode_port,
            "hadoop_webhdfs_port": chosen.hadoop_webhdfs_port,
            "hadoop_resourcemanager_port": chosen.hadoop_resourcemanager_port,
            "hadoop_history_port": chosen.hadoop_history_port,
        }

    @property
    def ready_file(self) -> Path:
        """Written by the cluster itself when all its parts are up."""
        return self.folder / "cluster.xml"

    @property
    def hosts_file(self) -> Path:
        """Name resolution for the cluster's processes: this machine's name must mean loopback, not its network card."""
        return self.folder / "hosts"

    def sites(self, addresses: Mapping[str, str]) -> dict[str, Properties]:
        """The files that clients read, and what they hold."""
        chosen = self.settings.services
        java_options = f"-Xmx384m {_OPEN} -Djdk.net.hosts.file={self.hosts_file}"
        yarn = {key: address for key, address in addresses.items() if key.startswith("yarn.")}
        history = {key: address for key, address in addresses.items() if key.startswith("mapreduce.")}
        return {
            "core-site.xml": {"fs.defaultFS": f"hdfs://{LOOPBACK}:{chosen.hadoop_namenode_port}"},
            "hdfs-site.xml": {
                "dfs.replication": 1,
                "dfs.namenode.http-address": f"{LOOPBACK}:{chosen.hadoop_webhdfs_port}",
            },
            "yarn-site.xml": {
                "yarn.resourcemanager.address": f"{LOOPBACK}:{chosen.hadoop_resourcemanager_port}",
                **yarn,
            },
            "mapred-site.xml": {
                "mapreduce.framework.name": "yarn",
                "mapreduce.application.classpath": jvm.classpath(self.settings, "hadoop"),
                "mapreduce.jobhistory.address": f"{LOOPBACK}:{chosen.hadoop_history_port}",
                **history,
                "yarn.app.mapreduce.am.staging-dir": "/staging",
                "yarn.app.mapreduce.am.resource.mb": 512,
                "yarn.app.mapreduce.am.command-opts": java_options,
                "mapreduce.map.memory.mb": 512,
                "mapreduce.reduce.memory.mb": 512,
                "mapreduce.map.java.opts": java_options,
                "mapreduce.reduce.java.opts": java_options,
            },
        }

    def prepare(self, say: Say) -> None:
        """Fetch the jars, choose the other ports, and write what clients and the cluster's processes read."""
        jvm.fetch(self.settings, "hadoop", say)
        self.ready_file.unlink(missing_ok=True)
        # Each start makes new work folders; those of the last one hold nothing that outlives its jobs.
        shutil.rmtree(self.data / "MiniHadoopClusterManager", ignore_errors=True)
        self.hosts_file.write_text(f"{LOOPBACK} localhost\n{LOOPBACK} {socket.gethostname()}\n")
        free = _free_ports(len(_CHOSEN_PORTS))
        self._addresses = {key: f"{LOOPBACK}:{port}" for key, port in zip(_CHOSEN_PORTS, free, strict=True)}
        folder = client_conf_dir(self.settings)
        folder.mkdir(exist_ok=True)
        for name, properties in self.sites(self._addresses).items():
            (folder / name).write_text(_as_xml(properties))

    def launch(self) -> Launch:
        """The cluster, by Hadoop's own manager for small ones."""
        chosen = self.settings.services
        told = {
            **self._addresses,
            "hdfs.minidfs.basedir": self.data / "hdfs",
            "yarn.app.mapreduce.am.staging-dir": "/staging",
            "yarn.nodemanager.vmem-check-enabled": "false",
            # A laptop's disk is often fuller than YARN likes; it would hold jobs back for ever, in silence.
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
            "yarn.scheduler.minimum-allocation-mb": 256,
            "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
        }
        argv = [
            jvm.java(),
            f"-Xmx{_HEAP}",
            "-XX:+ExitOnOutOfMemoryError",
            _OPEN,
            f"-Djdk.net.hosts.file={self.hosts_file}",
            f"-Dlog4j.configuration=file:{jvm.INFRA / 'hadoop-log4j.properties'}",
            f"-Dtest.build.data={self.data}",
            f"-Dhadoop.log.dir={self.logs}",
            "-cp",
            jvm.classpath(self.settings, "hadoop"),
            "org.apache.hadoop.mapreduce.MiniHadoopClusterManager",
            *([] if (self.data / "hdfs/name-0-1/current/VERSION").exists() else ["-format"]),
            *("-datanodes", "1", "-nodemanagers", "1"),
            *("-nnport", str(chosen.hadoop_namenode_port)),
            *("-nnhttpport", str(chosen.hadoop_webhdfs_port)),
            *("-rmport", str(chosen.hadoop_resourcemanager_port)),
            *("-jhsport", str(chosen.hadoop_history_port)),
            *("-writeConfig", str(self.ready_file)),
            *(word for key, value in told.items() for word in ("-D", f"{key}={value}")),
        ]
        # YARN's work folders are made below the working directory; containers inherit JAVA_HOME.
        return Launch(argv=argv, cwd=self.data, environment={"JAVA_HOME": str(jvm.java_home())})

    def answers(self) -> bool:
        """Whether every part is up and takes connections."""
        return self.ready_file.exists() and all(accepts(port) for port in self.ports.values())

    def left_behind(self) -> Sequence[Identity]:
        """Containers: YARN starts each in a session of its own, in a folder below our data."""
        found = []
        for pid in pids():
            with suppress(OSError):  # it ended meanwhile, or it is another user's
                folder = str((PROC / str(pid) / "cwd").readlink())
                inside = folder.startswith(f"{self.data.resolve()}{os.sep}") and _CONTAINER.search(folder)
                if inside and (identity := identify(pid)) is not None:
                    found.append(identity)
        return found


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:  # all held at once, so that none is given twice
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]


def _as_xml(properties: Properties) -> str:
    rows = (
        f"  <property><name>{html.escape(key)}</name><value>{html.escape(str(value))}</value></property>\n"
        for key, value in properties.items()
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<configuration>\n{"".join(rows)}</configuration>\n'
