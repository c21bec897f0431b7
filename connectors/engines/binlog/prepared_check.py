"""The query that Debezium's own user can run to see whether its server is prepared."""

from __future__ import annotations

from connectors.engines.binlog.names import HEARTBEAT_TABLE, OWN_DATABASE, signal_table
from connectors.engines.binlog.sql import literal
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake


def missing_preparation_query(lake: Lake, source: BinlogSource) -> str:
    """Return a query for what an administrator still has to prepare: one row of text for each problem."""
    problems = {
        "@@global.log_bin = 1": "there is no binary log (log_bin)",
        "@@global.binlog_format = 'ROW'": "binlog_format is not ROW",
        "@@global.binlog_row_image = 'FULL'": "binlog_row_image is not FULL",
        **{
            _has_table(table): f"there is no table {OWN_DATABASE}.{table} that the user may read"
            for table in (HEARTBEAT_TABLE, signal_table(lake, source))
        },
    }
    rows = " UNION ALL ".join(
        f"SELECT {condition} AS holds, {literal(problem)} AS problem"
        for condition, problem in problems.items()
    )
    return f"SELECT problem FROM ({rows}) AS prepared WHERE NOT holds"


def _has_table(table: str) -> str:
    return (
        "EXISTS (SELECT 1 FROM information_schema.TABLES WHERE "
        f"TABLE_SCHEMA = {literal(OWN_DATABASE)} AND TABLE_NAME = {literal(table)})"
    )
