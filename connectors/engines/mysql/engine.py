"""MySQL behind the engine interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from connectors.engines.binlog.engine import BinlogEngine
from connectors.engines.binlog.preflight import OF_BOTH, Rules


class MySqlEngine(BinlogEngine):
    """The engine of sources with `engine = "mysql"`."""

    title = "MySQL"
    schemes = ("mysql",)
    plugin = "debezium-connector-mysql"
    connector_class = "io.debezium.connector.mysql.MySqlConnector"
    client = "mysql"
    statement_limits = (
        "SET SESSION max_execution_time = {milliseconds}",
        "SET SESSION max_execution_time = 0",
    )
    # With it, changes keep their order after a failover.
    mending: ClassVar[Mapping[str, str]] = {
        "transactionNumbers.type": "io.tributary.connect.binlog.TransactionNumbers"
    }
    rules = Rules(
        title="MySQL",
        other=("MariaDB", "mariadb"),
        is_mariadb=False,
        oldest=(8, 0),
        wanted=OF_BOTH,
        # An update of a part of a JSON value is lost without a word. A compressed transaction's rows all
        # have one position.
        refused={"binlog_row_value_options": "PARTIAL_JSON", "binlog_transaction_compression": "ON"},
    )

    verifying_mode = "verify_identity"

    def encryption(self, *, is_required: bool) -> Mapping[str, str]:
        if is_required:
            return {"database.ssl.mode": "required"}
        # The default login of MySQL (caching_sha2_password) encrypts a password with the server's key.
        return {"database.ssl.mode": "disabled", "driver.allowPublicKeyRetrieval": "true"}
