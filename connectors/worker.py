"""The settings of Kafka Connect workers: all on one machine, and those that MSK Connect allows on AWS."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.certificates import PROVIDER as CERTIFICATES_PROVIDER
from connectors.deployment import PlaintextKafka
from tributary.contract.naming import LakeNames

SECRETS_MANAGER_PROVIDER = "io.tributary.connect.SecretsManagerConfigProvider"
"""The class in connectors/java, which a source's plugin contains."""

# Both connectors configure their own converters, but Connect requires defaults.
_SAME_EVERYWHERE: Mapping[str, str] = {
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    # After a crash, Debezium sends everything again since its offsets were last stored.
    "offset.flush.interval.ms": "1000",
}


def local_worker(names: LakeNames, kafka: PlaintextKafka, rest_port: int, plugin_path: str) -> dict[str, str]:
    """Return the settings of a distributed worker that listens only on 127.0.0.1.

    `plugin_path` contains a folder for each plugin.
    """
    return {
        **kafka.client_config,
        **_SAME_EVERYWHERE,
        "group.id": names.connect_group,
        "offset.storage.topic": names.connect_offsets_topic,
        "offset.storage.partitions": "1",
        "offset.storage.replication.factor": "1",
        "config.storage.topic": names.connect_configs_topic,
        "config.storage.replication.factor": "1",
        "status.storage.topic": names.connect_status_topic,
        "status.storage.partitions": "1",
        "status.storage.replication.factor": "1",
        "listeners": f"http://127.0.0.1:{rest_port}",
        "rest.advertised.host.name": "127.0.0.1",
        "rest.advertised.port": str(rest_port),
        "plugin.path": plugin_path,
        "plugin.discovery": "service_load",
        "config.providers": "directory",
        "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        # There is only one worker, so there is no point in waiting for a lost one to return.
        "scheduled.rebalance.max.delay.ms": "0",
    }


def msk_source_worker(offsets_topic: str, region: str) -> dict[str, str]:
    """Return the MSK Connect worker settings for a database source: its offsets topic and the providers.

    MSK Connect allows only some settings. It refuses properties that begin with admin., client., connect.,
    rest., sasl., security. and a few more, and sets the others itself (MSK developer guide, "Supported worker
    configuration properties").
    """
    return {
        **msk_sink_worker(),
        "offset.storage.topic": offsets_topic,
        "offset.storage.partitions": "1",
        "config.providers": "secretsmanager,certificates",
        "config.providers.certificates.class": CERTIFICATES_PROVIDER,
        "config.providers.secretsmanager.class": SECRETS_MANAGER_PROVIDER,
        "config.providers.secretsmanager.param.region": region,
    }


def msk_sink_worker() -> dict[str, str]:
    """Return the MSK Connect worker settings for a sink. Its consumer group keeps its position."""
    return {
        **_SAME_EVERYWHERE,
        # A small broker accepts only four logins a second (MSK developer guide, "Quota").
        "consumer.reconnect.backoff.ms": "1000",
        "consumer.reconnect.backoff.max.ms": "10000",
        "producer.reconnect.backoff.ms": "1000",
        "producer.reconnect.backoff.max.ms": "10000",
    }


def as_properties(config: Mapping[str, str]) -> str:
    """Return the config as a Java properties file, for java.util.Properties.load."""
    return "".join(
        f"{_escaped(key, is_key=True)}={_escaped(value)}\n" for key, value in sorted(config.items())
    )


def _escaped(text: str, *, is_key: bool = False) -> str:
    escaped = "".join(_escaped_character(character, is_key=is_key) for character in text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped_character(character: str, *, is_key: bool) -> str:
    if character in "\\" or (is_key and character in " :=#!"):
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
