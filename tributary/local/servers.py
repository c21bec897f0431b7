"""The configuration of a state folder's servers, so that they find each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connectors.deployment import (
    MAX_EVENT_MB,
    Deployment,
    DirectorySecret,
    JdbcCatalog,
    PlaintextKafka,
    S3Endpoint,
    TopicPolicy,
)
from connectors.worker import local_worker
from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.local import apicurio, connect, dynamodb, hash_salt, kafka, kinesis, mariadb, postgres, s3
from tributary.local.databases import SourceDatabase
from tributary.local.engine_servers import ENGINE_SERVERS
from tributary.local.schema_registry import SECRET, registry_access, registry_password
from tributary.local.server_files import ServerFiles
from tributary.local.state import LocalSettings, StateFolder

_CATALOG_SECRET = "catalog"


@dataclass(frozen=True)
class Servers:
    """The servers of one state folder, as values. Nothing here starts a server."""

    lake: Lake
    state: StateFolder
    settings: LocalSettings
    files: ServerFiles

    @property
    def postgres(self) -> postgres.PostgresServer:
        return postgres.PostgresServer(
            binaries=self.files.postgres,
            folder=self.state.postgres,
            log=self.state.log(postgres.SERVICE),
            run=self.state.run,
            port=self.settings.ports.postgres,
            admin_password=self.settings.secrets.postgres_admin.get_secret_value(),
        )

    @property
    def mariadb(self) -> mariadb.MariaDbServer:
        assert self.files.mariadb is not None, "the lake file has a source for it"
        admin = ENGINE_SERVERS["mariadb"].admin(self.settings)
        return mariadb.MariaDbServer(
            binaries=self.files.mariadb,
            folder=self.state.mariadb,
            log=self.state.log(mariadb.SERVICE),
            run=self.state.run,
            port=admin.port,
            admin_password=admin.password.get_secret_value(),
        )

    @property
    def kinesis(self) -> kinesis.KinesisServer:
        files, port = self.files.items, self.settings.ports.kinesis
        assert files is not None, "the lake file has a source for it"
        assert port is not None, "every start chooses a port"
        return kinesis.KinesisServer(
            node=files.node,
            packages=files.kinesalite,
            folder=self.state.kinesis,
            log=self.state.log(kinesis.SERVICE),
            run=self.state.run,
            port=port,
        )

    @property
    def dynamodb(self) -> dynamodb.DynamoDbServer:
        files, port = self.files.items, self.settings.ports.dynamodb
        assert files is not None, "the lake file has a source for it"
        assert port is not None, "every start chooses a port"
        return dynamodb.DynamoDbServer(
            packages=files.moto,
            folder=self.state.dynamodb,
            log=self.state.log(dynamodb.SERVICE),
            run=self.state.run,
            port=port,
            kinesis=self.settings.kinesis_endpoint,
            destinations=dynamodb.destinations_here(self.lake),
            disorder=self.lake.local.item_disorder,
        )

    @property
    def kafka(self) -> kafka.KafkaBroker:
        return kafka.KafkaBroker(
            java=self.files.java,
            classpath=self.files.kafka,
            folder=self.state.kafka,
            log=self.state.log(kafka.SERVICE),
            run=self.state.run,
            port=self.settings.ports.kafka,
            controller_port=self.settings.ports.kafka_controller,
            cluster_id=self.settings.kafka_cluster_id,
        )

    @property
    def s3(self) -> s3.S3Server:
        return s3.S3Server(
            java=self.files.java,
            jar=self.files.s3proxy,
            folder=self.state.s3,
            log=self.state.log(s3.SERVICE),
            run=self.state.run,
            port=self.settings.ports.s3,
            access_key=self.settings.secrets.s3_access_key.get_secret_value(),
            secret_key=self.settings.secrets.s3_secret_key.get_secret_value(),
        )

    @property
    def apicurio(self) -> apicurio.ApicurioServer:
        files, ports = self.files.apicurio, self.settings.ports
        assert files is not None, "the lake file has a registry without an address"
        assert ports.apicurio is not None, "every start chooses a port"
        assert ports.apicurio_management is not None, "every start chooses a port"
        return apicurio.ApicurioServer(
            java=files.java,
            program=files.program,
            folder=self.state.apicurio,
            log=self.state.log(apicurio.SERVICE),
            run=self.state.run,
            port=ports.apicurio,
            management_port=ports.apicurio_management,
        )

    def connect(self, plugin_path: Path) -> connect.ConnectWorker:
        """Return the Connect worker. Raise PasswordMissing if the environment lacks a source's password."""
        port, kafka_here = self.settings.ports.connect, PlaintextKafka(self.settings.kafka_bootstrap)
        return connect.ConnectWorker(
            java=self.files.java,
            classpath=self.files.kafka,
            folder=self.state.connect,
            log=self.state.log(connect.SERVICE),
            run=self.state.run,
            port=port,
            properties=local_worker(self.lake.names, kafka_here, port, str(plugin_path)),
            secrets=self._worker_secrets(),
            environment={
                "AWS_ACCESS_KEY_ID": self.settings.secrets.s3_access_key.get_secret_value(),
                "AWS_SECRET_ACCESS_KEY": self.settings.secrets.s3_secret_key.get_secret_value(),
                "AWS_REGION": s3.REGION,
            },
        )

    def database(self, source: Source) -> SourceDatabase:
        return SourceDatabase(self.lake, source, self.state, self.settings)

    @property
    def topics(self) -> TopicPolicy:
        """The policy of the tables' topics."""
        return _topics(self.lake)

    @property
    def deployment(self) -> Deployment:
        """The servers' addresses and secrets for the connectors' configs."""
        return deployment_here(self.lake, self.state, self.settings)

    def _worker_secrets(self) -> dict[str, str]:
        databases = [self.database(source) for source in self.lake.connected_sources]
        secrets = {database.secret_name: database.replication_password for database in databases}
        secrets[_CATALOG_SECRET] = self.settings.secrets.catalog
        if self.lake.hashes_columns:
            secrets[hash_salt.SECRET] = hash_salt.hash_salt(self.lake, self.settings)
        if (password := registry_password(self.lake)) is not None:
            secrets[SECRET] = password
        return {name: secret.get_secret_value() for name, secret in secrets.items()}


def deployment_here(lake: Lake, state: StateFolder, settings: LocalSettings) -> Deployment:
    """Return the addresses and secrets of a state folder's servers, for the connectors' configs."""
    secrets = connect.secrets_folder(state.connect)
    return Deployment(
        kafka=PlaintextKafka(settings.kafka_bootstrap),
        catalog=JdbcCatalog(
            f"jdbc:postgresql://127.0.0.1:{settings.ports.postgres}/{postgres.CATALOG}",
            postgres.CATALOG_ROLE,
            DirectorySecret(str(secrets), _CATALOG_SECRET),
        ),
        bronze_bucket=lake.names.bronze_bucket,
        databases={
            source.name: SourceDatabase(lake, source, state, settings).debezium_access(secrets)
            for source in lake.connected_sources
        },
        s3_endpoint=S3Endpoint(settings.s3_endpoint, s3.REGION),
        topics=_topics(lake),
        hash_salt=DirectorySecret(str(secrets), hash_salt.SECRET) if lake.hashes_columns else None,
        registry=registry_access(lake, settings, secrets),
    )


def _topics(lake: Lake) -> TopicPolicy:
    return TopicPolicy(max_event_mb=lake.max_event_mb or MAX_EVENT_MB)
