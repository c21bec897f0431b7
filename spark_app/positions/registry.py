"""The engines whose positions the app can read."""

from __future__ import annotations

from collections.abc import Mapping

from spark_app.positions.binlog import BinaryLog
from spark_app.positions.dynamodb import ItemLog
from spark_app.positions.postgres import PostgresLog
from spark_app.positions.source_log import SourceLog
from spark_app.positions.sqlserver import ChangeTables

SOURCE_LOGS: Mapping[str, SourceLog] = {
    "postgres": PostgresLog(),
    "mysql": BinaryLog(),
    "mariadb": BinaryLog(),
    "sqlserver": ChangeTables(),
    "dynamodb": ItemLog(),
}
"""By the name of an engine in the lake file, the reader of its positions."""
