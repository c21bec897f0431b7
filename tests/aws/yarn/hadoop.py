"""A Hadoop YARN on loopback: one resource manager and one node manager, from Maven Central."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

import psutil
import pyspark

from tests.ports import free_port
from tributary.artifacts.fetch import fetch
from tributary.artifacts.java import find_java
from tributary.artifacts.lock import read_lock
from tributary.local.local_server import LocalServer
from tributary.local.process import Command

LOCK = Path(__file__).with_name("hadoop.lock.json")
"""What PySpark's own jars lack of Hadoop's servers. `make test-long` fetches it."""

SPARK_HOME = Path(pyspark.__file__).parent

MEMORY_MEGABYTES = 12 * 1024
"""YARN's memory on an m7g.xlarge, for which `tributary.aws.spark_submit` chooses the sizes of a job."""

_MANAGER_ADDRESSES = (
    "address",
    "scheduler.address",
    "resource-tracker.address",
    "admin.address",
    "webapp.address",
)
_NODE_ADDRESSES = ("address", "localizer.address", "collector-service.address", "webapp.address")
_SERVER = "org.apache.hadoop.yarn.server"
_COMMANDS = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_JAVA_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # Guice makes classes through a method that Java 17 hides.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
_LOG_SETTINGS = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %-5p [%t] %m (%c{1})%n%ex
"""


@dataclass(frozen=True)
class Yarn:
    """A running YARN.

    folder                 for all its files: settings, containers, logs
    ports                  of the resource manager, by the names of its settings
    container_environment  what each container gets from its node
    """

    folder: Path
    java_home: Path
    ports: Mapping[str, int]
    container_environment: Mapping[str, str]

    @property
    def settings(self) -> Path:
        """The folder with Hadoop's settings."""
        return self.folder / "settings"

    @property
    def containers(self) -> Path:
        """The folder in which containers work."""
        return self.folder / "containers"

    @property
    def logs(self) -> Path:
        """The folder with the logs of containers, by application."""
        return self.folder / "logs"

    @property
    def scratch(self) -> Path:
        """The folder for the temporary files of servers and clients."""
        return self.folder / "tmp"

    @property
    def programs(self) -> Path:
        """The folder with the command `yarn`."""
        return self.folder / "bin"

    def environment(self) -> dict[str, str]:
        """Return the environment of a client or server, with nothing from the caller's."""
        return {
            "PATH": os.pathsep.join([str(self.programs), str(SPARK_HOME / "bin"), os.defpath]),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(self.folder),
            "JAVA_HOME": str(self.java_home),
            "HADOOP_CONF_DIR": str(self.settings),
        }

    def state(self, application_id: str) -> str:
        """Return an application's state, as the command `yarn` prints it."""
        command = [str(self.programs / "yarn"), "application", "-status", application_id]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=True)
        found = re.search(r"^\s+State : (\w+)$", done.stdout, re.MULTILINE)
        assert found is not None, done.stdout
        return found[1]

    def processes(self, application_id: str) -> Iterator[psutil.Process]:
        """Yield the application's processes: those that work in one of its containers."""
        for process in psutil.process_iter(["cwd"]):
            folder = process.info["cwd"]
            if folder and Path(folder).is_relative_to(self.containers) and application_id in folder:
                yield process

    def count_nodes(self) -> int | None:
        """Return how many nodes are ready for containers, or None if the resource manager does not answer."""
        address = f"http://127.0.0.1:{self.ports['webapp.address']}/ws/v1/cluster/metrics"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return int(json.load(answer)["activeNodes"])
        except OSError:
            return None


@dataclass(frozen=True)
class _Server(LocalServer):
    main_class: ClassVar[str]

    yarn: Yarn
    run: Path

    def command(self) -> Command:
        return Command(
            self.service,
            [
                *(str(self.yarn.java_home / "bin" / "java"), f"-Djava.io.tmpdir={self.yarn.scratch}"),
                *(*_JAVA_OPTIONS, f"{_SERVER}.{self.main_class}"),
            ],
            log=self.yarn.folder / f"{self.service}.log",
            environment={**self.yarn.environment(), "CLASSPATH": _class_path(self.yarn)},
            folder=self.yarn.folder,
        )


@dataclass(frozen=True)
class _ResourceManager(_Server):
    service: ClassVar[str] = "resourcemanager"
    main_class: ClassVar[str] = "resourcemanager.ResourceManager"

    def answers(self) -> bool:
        return self.yarn.count_nodes() is not None


@dataclass(frozen=True)
class _NodeManager(_Server):
    service: ClassVar[str] = "nodemanager"
    main_class: ClassVar[str] = "nodemanager.NodeManager"
    patience_seconds: ClassVar[float] = 1.0  # it would wait for containers whose work no longer matters

    def answers(self) -> bool:
        return bool(self.yarn.count_nodes())


@contextmanager
def running_yarn(
    folder: Path, storage: Mapping[str, str], container_environment: Mapping[str, str]
) -> Iterator[Yarn]:
    """Run YARN within the context. Every process of it ends with the context, also containers.

    storage  Hadoop's settings for S3, which clients and containers read too
    """
    ports = {name: free_port() for name in _MANAGER_ADDRESSES}
    yarn = Yarn(folder, find_java().home, ports, container_environment)
    _write_files(yarn, storage)
    run = folder / "run"
    try:
        _ResourceManager(yarn, run).start(threading.Event())
        _NodeManager(yarn, run).start(threading.Event())
        yield yarn
    finally:
        _NodeManager.stop(run)
        _ResourceManager.stop(run)
        _end_left_containers(yarn)


def _end_left_containers(yarn: Yarn) -> None:
    """End the containers' processes that are no children of the node manager, or no longer."""
    left = list(yarn.processes("application_"))
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=10)


def _class_path(yarn: Yarn) -> str:
    servers = fetch(read_lock(LOCK)["yarn"]).values()
    return os.pathsep.join(map(str, (yarn.settings, *servers, SPARK_HOME / "jars" / "*")))


def _write_files(yarn: Yarn, storage: Mapping[str, str]) -> None:
    for folder in (yarn.settings, yarn.containers, yarn.scratch, yarn.programs, yarn.logs):
        folder.mkdir()
    _write_settings(yarn.settings / "core-site.xml", {"hadoop.tmp.dir": str(yarn.scratch), **storage})
    _write_settings(yarn.settings / "yarn-site.xml", _yarn_site(yarn))
    _write_settings(yarn.settings / "capacity-scheduler.xml", _QUEUES)
    (yarn.settings / "log4j2.properties").write_text(_LOG_SETTINGS)
    # Hadoop's own script runs this class for `yarn application`.
    program = yarn.programs / "yarn"
    program.write_text(
        f'#!/bin/sh\nCLASSPATH="{_class_path(yarn)}" exec "{yarn.java_home}/bin/java" {_COMMANDS} "$@"\n'
    )
    program.chmod(0o755)


_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # A driver may take more than a tenth of the only node.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


def _yarn_site(yarn: Yarn) -> Mapping[str, str]:
    manager, node = "yarn.resourcemanager", "yarn.nodemanager"
    environment = ",".join(f"{name}={value}" for name, value in yarn.container_environment.items())
    return {
        f"{manager}.hostname": "127.0.0.1",
        **{f"{manager}.{name}": f"127.0.0.1:{port}" for name, port in yarn.ports.items()},
        **{f"{node}.{name}": "127.0.0.1:0" for name in _NODE_ADDRESSES},
        f"{node}.local-dirs": str(yarn.containers),
        f"{node}.log-dirs": str(yarn.logs),
        f"{node}.resource.memory-mb": str(MEMORY_MEGABYTES),
        f"{node}.resource.cpu-vcores": "4",
        # Java reserves more memory than it uses here, and a nearly full disk must not stop the test.
        f"{node}.pmem-check-enabled": "false",
        f"{node}.vmem-check-enabled": "false",
        f"{node}.disk-health-checker.enable": "false",
        f"{node}.env-whitelist": "JAVA_HOME,LANG,TZ",
        f"{node}.admin-env": environment,
        "yarn.scheduler.maximum-allocation-mb": str(MEMORY_MEGABYTES),
    }


def _write_settings(path: Path, settings: Mapping[str, str]) -> None:
    """Write a file in Hadoop's form. Only the owner can read it, because it may hold credentials."""
    root = ElementTree.Element("configuration")
    for name, value in settings.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    path.touch(0o600)
    path.write_bytes(ElementTree.tostring(root))
