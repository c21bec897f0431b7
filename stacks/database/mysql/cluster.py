"""What makes an Aurora cluster a MySQL whose binary log Debezium can read."""

from __future__ import annotations

from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager

from connectors.certificates import REGIONS
from connectors.engines.mysql.engine import MySqlEngine
from stacks.base import TributaryStack
from stacks.database.aurora import AuroraEngine
from stacks.database.own_server import PACKS, USUAL_PORT
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
            # Who connects. Statements would put passwords of new users into the log.
            "server_audit_logging": "1",
            "server_audit_events": "CONNECT",
            "slow_query_log": "1",
        },
        logs=("error", "audit", "slowquery"),
        database=None,
        rotation=secretsmanager.HostedRotation.mysql_single_user,
        options=(
            engine.verified_on_aws() if stack.aws.region in REGIONS else engine.encryption(is_required=True)
        ),
        reasons=_REASONS,
    )


_NO_BACKTRACK = (
    "Backtrack would set the database back under the connector, and the lake would keep what never was. "
    "Aurora does not have it together with a binary log."
)
_NO_GENERAL_LOG = "The general log would hold every statement, with the values of the application's rows."
_REASONS = {
    "AwsSolutions-RDS11": USUAL_PORT,
    "AwsSolutions-RDS14": _NO_BACKTRACK,
    **{f"{pack}-RDSLoggingEnabled[LogExport::general]": _NO_GENERAL_LOG for pack in PACKS},
}
