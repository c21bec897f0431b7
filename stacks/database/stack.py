"""The sources' databases: a cluster for each that is not there yet, and how Debezium reaches them all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from aws_cdk import CfnOutput, CfnWaitConditionHandle, Stage
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from connectors.deployment import DatabaseAccess, SecretsManagerSecret, replication_user
from connectors.engines.postgres.preparation import setup_script
from stacks.base import TributaryStack
from stacks.database.key import DatabaseKey
from stacks.database.postgres_cluster import PostgresCluster, construct_id
from stacks.database.prepared_database import BootstrapFunction, PreparedDatabase
from stacks.network import NetworkStack
from tributary.contract.aws import ExistingDatabase
from tributary.contract.lake import Lake, Source

_CLUSTERS = {"postgres": PostgresCluster}
"""By a source's engine."""


class DatabaseStack(TributaryStack):
    """By the source's name:

    access    how Debezium reaches the database
    secrets   what it logs in with
    ready     there once the database is prepared; an existing one is its administrator's to prepare
    clusters  those of the sources that no `[aws.source.NAME]` gives a database

    bootstrap  prepares the clusters, and fails where it cannot; None where there are none
    """

    def __init__(self, scope: Construct, lake: Lake, network: NetworkStack) -> None:
        super().__init__(scope, "database", lake, "source databases, prepared for replication")
        self.access: dict[str, DatabaseAccess] = {}
        self.secrets: dict[str, secretsmanager.ISecret] = {}
        self.ready: dict[str, IDependable] = {}
        self.clusters: dict[str, PostgresCluster] = {}
        self.bootstrap: BootstrapFunction | None = None

        for source in lake.sources:
            if source.name in self.aws.source:
                self._add_existing(source, self.aws.source[source.name])
        own = [source for source in lake.sources if source.name not in self.aws.source]
        if own:
            self._add_clusters(own, network)

    def _add_clusters(self, sources: Sequence[Source], network: NetworkStack) -> None:
        key: kms.IKey | None = DatabaseKey(self, "Key") if self.aws.storage.encryption == "kms" else None
        for source in sources:
            cluster = _CLUSTERS[source.engine](self, source, network, key)
            self.clusters[source.name] = cluster
            self.access[source.name], self.secrets[source.name] = cluster.access, cluster.replication
        self.bootstrap = BootstrapFunction(
            self,
            "Bootstrap",
            [cluster.to_prepare for cluster in self.clusters.values()],
            key,
            network.log_key,
        )
        for source in sources:
            self._prepare(source, self.clusters[source.name], self.bootstrap)

    def _prepare(self, source: Source, cluster: PostgresCluster, bootstrap: BootstrapFunction) -> None:
        prepared = PreparedDatabase(cluster, "Prepared", self.lake, source, cluster.to_prepare, bootstrap)
        # A password that changes while the database is prepared would only make it wait.
        cluster.rotate_secret().node.add_dependency(prepared)
        self.ready[source.name] = prepared
        self._tell(source, "Endpoint", "Where the database is", cluster.access.host)
        self._tell(source, "AdminSecret", "What its administrator logs in with", cluster.secret.secret_arn)
        self._tell(source, "Remarks", "What is to be known of its preparation", prepared.remarks)

    def _add_existing(self, source: Source, database: ExistingDatabase) -> None:
        place = Construct(self, construct_id(source.name))
        self.access[source.name] = DatabaseAccess(
            host=database.host,
            port=database.port,
            user=replication_user(self.lake, source),
            password=SecretsManagerSecret(_secret_name(database.secret), "password"),
            sslmode=database.sslmode,
        )
        self.secrets[source.name] = secretsmanager.Secret.from_secret_complete_arn(
            place, "Secret", database.secret
        )
        # A stack without any resource is none.
        CfnWaitConditionHandle(place, "Existing")
        self.ready[source.name] = place
        script = self._beside_the_templates(f"{source.name}.sql")
        script.write_text(setup_script(self.lake, source))
        self._tell(
            source,
            "Sql",
            "What an administrator of the database runs, once, before the connectors are made",
            f"psql -h {database.host} -p {database.port} -d {source.database} -f cdk.out/{script.name}",
        )

    def _beside_the_templates(self, name: str) -> Path:
        stage = Stage.of(self)
        assert stage is not None
        folder = Path(stage.outdir)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def _tell(self, source: Source, what: str, description: str, value: str) -> None:
        CfnOutput(self, f"{construct_id(source.name)}{what}", description=description, value=value)


def _secret_name(arn: str) -> str:
    """Secrets Manager ends the name with a hyphen and six characters of its own."""
    return re.sub(r"-[0-9A-Za-z]{6}\Z", "", arn.split(":secret:", 1)[-1])
