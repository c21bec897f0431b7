"""What makes an Aurora cluster a MySQL whose binary log Debezium can read."""

from __future__ import annotations

from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager

from connectors.certificates import REGIONS
from connectors.engines.mysql.engine import MySqlEngine
from stacks.base import TributaryStack
from stacks.database.aurora import AuroraEngine
from tributary.contract.engines.binlog import PORT

MYSQL = "8.0"
"""The MySQL that Aurora MySQL 3 is compatible with."""


def aurora_mysql(stack: TributaryStack) -> AuroraEngine:
    """Return the engine of the clusters.

    In a region whose roots are not known, no certificate is verified.
    """
    settings, engine = stack.aws.mysql, MySqlEngine()
    return AuroraEngine(
        engine=rds.DatabaseClusterEngine.aurora_mysql(
            version=rds.AuroraMysqlEngineVersion.of(f"{MYSQL}.mysql_aurora.{settings.engine_version}", MYSQL)
        ),
        port=PORT,
        settings=settings,
        section="[aws.mysql]",
        parameters={
            "binlog_format": "ROW",
            # With them, a connector finds its place in another server's log.
            "gtid-mode": "ON",
            "enforce_gtid_consistency": "ON",
            "require_secure_transport": "ON",
        },
        log="error",
        database=None,
        rotation=secretsmanager.HostedRotation.mysql_single_user,
        options=(
            engine.verified_on_aws() if stack.aws.region in REGIONS else engine.encryption(is_required=True)
        ),
    )
