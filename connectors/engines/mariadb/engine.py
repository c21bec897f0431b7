"""MariaDB behind the engine interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from connectors.engines.binlog.character_sets import UNREADABLE_IN_MARIADB
from connectors.engines.binlog.engine import BinlogEngine
from connectors.engines.binlog.preflight import OF_BOTH, Rules


class MariaDbEngine(BinlogEngine):
    """The engine of sources with `engine = "mariadb"`."""

    title = "MariaDB"
    schemes = ("mariadb",)
    plugin = "debezium-connector-mariadb"
    connector_class = "io.debezium.connector.mariadb.MariaDbConnector"
    client = "mariadb"
    statement_limits = ("SET SESSION max_statement_time = {seconds}", "SET SESSION max_statement_time = 0")
    # With it, a zero timestamp from the log is NULL, as from a snapshot.
    mending: ClassVar[Mapping[str, str]] = {
        "zeroTimestamps.type": "io.tributary.connect.binlog.ZeroTimestamps"
    }
    rules = Rules(
        title="MariaDB",
        other=("MySQL", "mysql"),
        is_mariadb=True,
        oldest=(10, 6),
        # Without positions of their own, all events of a transaction seem to be at one place of the log.
        # MariaDB has the variable since 11.4, where the default is OFF.
        wanted={**OF_BOTH, "binlog_legacy_event_pos": "ON"},
        refused={"log_bin_compress": "ON"},
        unreadable=UNREADABLE_IN_MARIADB,
    )

    verifying_mode = "verify-full"

    def encryption(self, *, is_required: bool) -> Mapping[str, str]:
        return {"database.ssl.mode": "trust" if is_required else "disable"}
