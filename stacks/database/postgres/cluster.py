"""What makes an Aurora cluster a PostgreSQL with logical replication."""

from __future__ import annotations

from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager

from connectors.certificates import REGIONS
from connectors.engines.postgres.connector import encrypted_on_aws
from stacks.base import TributaryStack
from stacks.database.aurora import AuroraEngine
from tributary.contract.engines.postgres import PORT, PostgresSource


def aurora_postgres(stack: TributaryStack, source: PostgresSource) -> AuroraEngine:
    """Return the engine of the source's cluster.

    In a region whose roots are not known, no certificate is verified.
    """
    settings = stack.aws.database
    version = settings.engine_version
    return AuroraEngine(
        engine=rds.DatabaseClusterEngine.aurora_postgres(
            version=rds.AuroraPostgresEngineVersion.of(version, version.partition(".")[0])
        ),
        port=PORT,
        settings=settings,
        section="[aws.database]",
        parameters={
            "rds.logical_replication": "1",
            "rds.force_ssl": "1",
            "max_replication_slots": "20",
            "max_wal_senders": "20",
            # Milliseconds without an answer from Debezium until its slot is free again.
            "wal_sender_timeout": "60000",
        },
        logs=("postgresql",),
        database=source.database,
        rotation=secretsmanager.HostedRotation.postgre_sql_single_user,
        options=encrypted_on_aws("verify-full" if stack.aws.region in REGIONS else "require"),
    )
