"""Values in a connector's config that differ between one machine and AWS: addresses, catalogs, secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tributary.contract.errors import TributaryError


class NoPlaceholder(TributaryError):
    """Connect's `${provider:path:key}` cannot express a reference to this secret."""


@dataclass(frozen=True)
class DirectorySecret:
    """A secret that fills a whole file, for Kafka's DirectoryConfigProvider."""

    folder: str
    file: str

    @property
    def placeholder(self) -> str:
        return _placeholder("directory", self.folder, self.file)


@dataclass(frozen=True)
class SecretsManagerSecret:
    """A key of a JSON secret in AWS Secrets Manager, for the config provider in a source's plugin."""

    name: str
    key: str

    @property
    def placeholder(self) -> str:
        return _placeholder("secretsmanager", self.name, self.key)


SecretReference = DirectorySecret | SecretsManagerSecret


@dataclass(frozen=True)
class PlaintextKafka:
    """A broker on this machine, without authentication."""

    bootstrap_servers: str

    @property
    def client_config(self) -> Mapping[str, str]:
        """The options that a Kafka client needs to connect."""
        return {"bootstrap.servers": self.bootstrap_servers}


@dataclass(frozen=True)
class MskIamKafka:
    """Amazon MSK with IAM authentication."""

    bootstrap_servers: str

    @property
    def client_config(self) -> Mapping[str, str]:
        """The options that a Kafka client needs to connect. The classes come from aws-msk-iam-auth."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
            "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
            **_PATIENT_LOGIN,
        }


_PATIENT_LOGIN: Mapping[str, str] = {
    "reconnect.backoff.ms": "1000",
    "reconnect.backoff.max.ms": "10000",
}
"""A kafka.t3.small broker accepts only four new IAM connections a second (MSK developer guide, "Amazon MSK
Standard broker quota"). Clients that retried at once would lengthen the queue."""

Kafka = PlaintextKafka | MskIamKafka


@dataclass(frozen=True)
class JdbcCatalog:
    """Iceberg's catalog in its own PostgreSQL database. `uri` is jdbc:postgresql://host:port/name."""

    uri: str
    user: str
    password: SecretReference

    @property
    def config(self) -> Mapping[str, str]:
        return {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": self.uri,
            "jdbc.user": self.user,
            "jdbc.password": self.password.placeholder,
            "jdbc.schema-version": "V1",
            # PostgreSQL is stopping, has crashed or is starting. Without retries the task fails permanently.
            "retryable_status_codes": "57P01,57P02,57P03",
        }


@dataclass(frozen=True)
class GlueCatalog:
    """The AWS Glue Data Catalog of the account that the worker runs in, in its region."""

    region: str

    @property
    def config(self) -> Mapping[str, str]:
        return {
            "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
            # For Glue and S3. A worker of MSK Connect has neither AWS_REGION nor instance metadata.
            "client.region": self.region,
        }


Catalog = JdbcCatalog | GlueCatalog


@dataclass(frozen=True)
class S3Endpoint:
    """An S3-compatible server. The worker reads the credentials from AWS_ACCESS_KEY_ID and the like."""

    url: str
    region: str = "us-east-1"

    @property
    def config(self) -> Mapping[str, str]:
        return {
            "s3.endpoint": self.url,
            "s3.path-style-access": "true",
            "client.region": self.region,
        }


@dataclass(frozen=True)
class DatabaseAccess:
    """A connector's access to one source's database.

    options  additional connector options, such as how connections are encrypted
    """

    host: str
    port: int
    user: str
    password: SecretReference
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ApicurioAccess:
    """An Apicurio server. Its address has no path. `user` is None if nobody has to log in."""

    address: str
    user: str | None = None
    password: SecretReference | None = None


@dataclass(frozen=True)
class ConfluentAccess:
    """A registry with Confluent's interface. `user` is None if nobody has to log in."""

    address: str
    user: str | None = None
    password: SecretReference | None = None


@dataclass(frozen=True)
class GlueAccess:
    """A registry of AWS Glue. `endpoint` is the address of a Glue other than AWS's."""

    region: str
    name: str
    endpoint: str | None = None


RegistryAccess = ApicurioAccess | ConfluentAccess | GlueAccess


MAX_EVENT_MB = 16
"""The default size limit of an event, in mebibytes."""


@dataclass(frozen=True)
class TopicPolicy:
    """The retention and size limits of a table's topic, no matter who creates the topic.

    retention        how long Kafka keeps events. `[bronze]` says how long bronze does.
    max_event_mb     the largest event that producer and topic accept, in mebibytes: a row's before and after,
                     with their schema
    """

    retention: timedelta = timedelta(days=7)
    max_event_mb: int = MAX_EVENT_MB

    @property
    def max_event_bytes(self) -> int:
        return self.max_event_mb * 2**20

    @property
    def config(self) -> Mapping[str, str]:
        """The topic's options."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention // timedelta(milliseconds=1)),
            "max.message.bytes": str(self.max_event_bytes),
        }


@dataclass(frozen=True)
class Deployment:
    """One place where a lake's connectors run.

    databases       by the source's name
    bronze_bucket   without s3://
    s3_endpoint     None: Amazon S3
    hash_salt       the salt of hashed columns; None: no table has any
    registry        of the schemas of Avro events; None: no source has any
    """

    kafka: Kafka
    catalog: Catalog
    bronze_bucket: str
    databases: Mapping[str, DatabaseAccess]
    s3_endpoint: S3Endpoint | None = None
    topics: TopicPolicy = TopicPolicy()
    hash_salt: SecretReference | None = None
    registry: RegistryAccess | None = None


@dataclass(frozen=True)
class ConnectorConfig:
    """A connector's name and config, as Connect's REST interface and MSK Connect take them."""

    name: str
    config: Mapping[str, str]


def _placeholder(provider: str, path: str, key: str) -> str:
    """Return the placeholder. Raise NoPlaceholder if Kafka's ConfigTransformer would split it wrongly."""
    if re.search(r"[:}]", path) or re.search(r"[:}]", key):
        raise NoPlaceholder(
            "Kafka Connect cannot reference this secret",
            where=f"{path} {key}",
            expected="a path and a name without : and }",
        )
    return f"${{{provider}:{path}:{key}}}"
