"""Let dbt-duckdb read the lake: a dbt source is a table of the lake, read without Spark.

In profiles.yml, a plugin has `module: tributary.dbt`. A source names that plugin's alias as `plugin:`. This
module needs dbt-duckdb, which Tributary itself does not require.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.duckdb.utils import SourceConfig
from dbt_common.exceptions import DbtRuntimeError

from tributary.contract.errors import TributaryError
from tributary.operations.remedy_words import remedy_words
from tributary.operations.table_lag import read_lags
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

EQUAL_AT = "_lake_equal_at"
"""The column that tells until when a table has all changes that Kafka had, in UTC."""
_DEFAULTS = {"lake": "lake.toml", "state": ".tributary"}
"""The entries of the plugin's config in profiles.yml, and what they are without an entry."""


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt is not in this environment.
    """Loads tables of the lake that a lake file and a state folder describe."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Take `lake` (the lake file) and `state` (the state folder) from the profile.

        Raises DbtRuntimeError if the profile has other entries, or if the lake file cannot be used.
        """
        # Without a config, dbt-duckdb hands over DuckDB's own settings.
        is_own = self.creds is None or plugin_config is not self.creds.settings
        with _errors_of_dbt():
            paths = _paths(plugin_config if is_own else {}, self.name)
            self._workspace = Workspace.open(paths["lake"], paths["state"])

    def load(self, source_config: SourceConfig) -> pa.Table:
        """Return a table's rows with the column `_lake_equal_at`.

        The source's identifier is the table's name in Glue, `shop__public__sales`, or a name that
        `OpenLake.table` takes. If the source's config has `lake_table`, that is the name. Raises
        DbtRuntimeError if the lake or the table cannot be read.
        """
        with _errors_of_dbt():
            return self._rows(source_config)

    def _rows(self, source_config: SourceConfig) -> pa.Table:
        import pyarrow as pa

        name = source_config.get("lake_table", source_config.identifier.replace("__", "."))
        table = self._workspace.open_lake.table(name)
        # The positions come first: the rows that are read after them are as new or newer.
        now, lags = datetime.now(UTC), {lag.table: lag for lag in read_lags(self._workspace)}
        moment = lags[table.name].equal_at(now) if table.name in lags else None
        rows = table.arrow()
        kind = pa.timestamp("us", tz="UTC")
        return rows.append_column(EQUAL_AT, pa.array([moment] * rows.num_rows, type=kind))


def _paths(config: Mapping[str, object], plugin: str) -> Mapping[str, Path]:
    """Return the paths that the plugin's config names. Raises TributaryError for a wrong entry."""
    where = f"profiles.yml, config of the plugin {plugin}"
    if unknown := sorted(config.keys() - _DEFAULTS.keys()):
        raise TributaryError(
            "unknown entry",
            where=where,
            found=", ".join(unknown),
            expected=" or ".join(_DEFAULTS),
            remedy="Correct or remove the entry.",
        )
    paths = {}
    for entry, default in _DEFAULTS.items():
        value = config.get(entry, default)
        if not isinstance(value, str) or not value:
            raise TributaryError(
                "not a path",
                where=f"{where}, entry {entry}",
                found=repr(value),
                expected=f'a path, such as "{default}"',
                remedy="Write the path between quotes.",
            )
        paths[entry] = Path(value)
    return paths


@contextmanager
def _errors_of_dbt() -> Iterator[None]:
    """Raise errors as dbt's own, which dbt shows without a traceback, with commands that help."""
    try:
        yield
    except TributaryError as error:
        raise DbtRuntimeError(error.text(remedy_words)) from error
