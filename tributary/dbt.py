"""Let dbt-duckdb read the lake: a dbt source is a table of the lake, read without Spark.

In profiles.yml, a plugin has `module: tributary.dbt`. A source names that plugin's alias as `plugin:`. This
module needs dbt-duckdb, which Tributary itself does not require.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.duckdb.utils import SourceConfig

from tributary.operations.table_lag import read_lags
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

EQUAL_AT = "_lake_equal_at"
"""The column that tells until when a table has all changes that Kafka had, in UTC."""


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt is not in this environment.
    """Loads tables of the lake that a lake file and a state folder describe."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Take `lake` (the lake file) and `state` (the state folder) from the profile."""
        self._workspace = Workspace.open(
            Path(plugin_config.get("lake", "lake.toml")), Path(plugin_config.get("state", ".tributary"))
        )

    def load(self, source_config: SourceConfig) -> pa.Table:
        """Return a table's rows with the column `_lake_equal_at`.

        The source's identifier is the table's name in Glue, `shop__public__sales`, or a name that
        `OpenLake.table` takes. If the source's config has `lake_table`, that is the name. Raises
        UnknownTable, PipelineDown, LakeUnreadable, UnreadableTable and KafkaUnreachable.
        """
        import pyarrow as pa

        name = source_config.get("lake_table", source_config.identifier.replace("__", "."))
        table = self._workspace.open_lake.table(name)
        # The positions come first: the rows that are read after them are as new or newer.
        now, lags = datetime.now(UTC), {lag.table: lag for lag in read_lags(self._workspace)}
        moment = lags[table.name].equal_at(now) if table.name in lags else None
        rows = table.arrow()
        kind = pa.timestamp("us", tz="UTC")
        return rows.append_column(EQUAL_AT, pa.array([moment] * rows.num_rows, type=kind))
