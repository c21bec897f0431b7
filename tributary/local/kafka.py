"""Format, start, stop and check a single Kafka broker without ZooKeeper, and create its topics."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs export AdminClient only
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from confluent_kafka.cimpl import KafkaError, NewTopic

from connectors.worker import as_properties
from tributary.contract.errors import TributaryError
from tributary.local.jvm import java_command, write_log4j_properties
from tributary.local.local_server import LocalServer
from tributary.local.process import Command

SERVICE = "kafka"
HEAP_MEGABYTES = 256
_ADMIN_TIMEOUT_SECONDS = 30


class KafkaUnfit(TributaryError):
    """The broker's folder could not be formatted, or a topic could not be created or configured."""


@dataclass(frozen=True)
class KafkaBroker(LocalServer):
    """A broker that is its own controller. `cluster_id` is 16 bytes in URL-safe base64."""

    service: ClassVar[str] = SERVICE
    of_every_lake: ClassVar[bool] = True
    patience_seconds: ClassVar[float] = 20.0

    java: Path
    classpath: Sequence[Path]
    folder: Path
    log: Path
    run: Path
    port: int
    controller_port: int
    cluster_id: str

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> Command:
        """Format the broker's folder if it is new, and return the command. Raises KafkaUnfit."""
        config = self.folder / "server.properties"
        log4j = self.folder / "log4j.properties"
        config.write_text(as_properties(_server_properties(self)))
        write_log4j_properties(
            log4j, "INFO", {"kafka.log": "WARN", "org.apache.kafka": "WARN", "state.change.logger": "WARN"}
        )
        if not (self.folder / "log" / "meta.properties").exists():
            _format(self, config, log4j)
        return java_command(
            SERVICE,
            self.java,
            self.classpath,
            "kafka.Kafka",
            [str(config)],
            heap_megabytes=HEAP_MEGABYTES,
            scratch=self.folder / "tmp",
            log=self.log,
            properties={"log4j.configuration": log4j.as_uri()},
        )

    def answers(self) -> bool:
        """Return whether the broker lists its topics."""
        try:
            return bool(_admin(self.bootstrap).list_topics(timeout=0.5).brokers)
        except KafkaException:
            return False


def create_topic(bootstrap: str, topic: str, partitions: int) -> bool:
    """Create the topic. Return False if it already exists. Raise KafkaUnfit."""
    request = NewTopic(topic, num_partitions=partitions, replication_factor=1)
    admin = _admin(bootstrap)  # a named reference, because a deleted client cancels its requests
    try:
        admin.create_topics([request], request_timeout=_ADMIN_TIMEOUT_SECONDS)[topic].result()
        return True
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise KafkaUnfit(
            "a topic could not be created", where=f"{bootstrap} {topic}", found=str(error)
        ) from error


def configure_topics(bootstrap: str, wanted: str, config: Mapping[str, str]) -> None:
    """Set options of all topics that fully match the regular expression `wanted`. Raise KafkaUnfit."""
    admin = _admin(bootstrap)
    options = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    try:
        requests = [
            ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=options)
            for topic in admin.list_topics(timeout=_ADMIN_TIMEOUT_SECONDS).topics
            if re.fullmatch(wanted, topic)
        ]
        answers = admin.incremental_alter_configs(requests) if requests else {}
        for answer in answers.values():
            answer.result()
    except KafkaException as error:
        raise KafkaUnfit("the topics' options could not be set", where=bootstrap, found=str(error)) from error


def _server_properties(broker: KafkaBroker) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{broker.controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},CONTROLLER://127.0.0.1:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(broker.folder / "log"),
        # As on a managed cluster, a typo must not create a topic.
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # After a kill, a restarted broker is refused until the killed broker's session expires.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "1000",
        # By default, the controller writes twice a second so that other controllers see that it works.
        "metadata.max.idle.interval.ms": "0",
        "log.cleaner.dedupe.buffer.size": "8000000",
        "num.network.threads": "2",
        "num.io.threads": "2",
    }


def _format(broker: KafkaBroker, config: Path, log4j: Path) -> None:
    command = java_command(
        "kafka-storage",
        broker.java,
        broker.classpath,
        "kafka.tools.StorageTool",
        ["format", "--ignore-formatted", "--cluster-id", broker.cluster_id, "--config", str(config)],
        heap_megabytes=64,
        scratch=broker.folder / "tmp",
        log=broker.log,
        properties={"log4j.configuration": log4j.as_uri()},
    )
    try:
        result = subprocess.run(
            command.arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=dict(command.environment),
        )
    except OSError as error:
        raise KafkaUnfit("Java cannot run", where=str(broker.java), found=str(error)) from error
    if result.returncode != 0:
        raise KafkaUnfit(
            "Kafka could not format its folder",
            where=str(broker.folder),
            found=(result.stderr or result.stdout).strip()[-1000:],
        )


def _admin(bootstrap: str) -> AdminClient:
    # While the broker starts, librdkafka would print every refused connection.
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
