"""Let the connector of a running source read the tables that the check of the source takes now."""

from __future__ import annotations

import threading

from connectors.connect_rest import ConnectRest
from connectors.engines.engine import Checked
from tributary.contract.lake import Lake
from tributary.contract.remedies import Words
from tributary.contract.source import Source
from tributary.local.connector_state import ConnectorKeeper
from tributary.local.databases import SourceDatabase, prepare_database
from tributary.local.left_out import replace_left_out
from tributary.local.servers import deployment_here
from tributary.local.source_connector import SourceConnector
from tributary.local.state import LocalSettings, StateFolder


def renew_connector(
    lake: Lake, source: Source, state: StateFolder, settings: LocalSettings, words: Words
) -> None:
    """Prepare the source's database again, and return once its connector runs with what was found.

    That is what a start does for a source whose servers run. The connector starts again even if its config
    is the same, because it can know a table as that was before. It keeps its position. Raises
    StateFolderBusy while servers are started or stopped, ConnectorFailed, and the errors of
    `prepare_database`."""
    with state.exclusive():
        database = SourceDatabase(lake, source, state, settings)
        _run(database, prepare_database(database), words)


def leave_out_unknown_table(
    lake: Lake, source: Source, state: StateFolder, settings: LocalSettings, words: Words, failure: str
) -> bool:
    """Renew a connector that has failed at a table, so that it skips this table. Return whether it does.

    It does if the lake cannot take the table, or if the table is gone. `failure` says why the connector has
    failed. Raises the errors of `renew_connector`."""
    database = SourceDatabase(lake, source, state, settings)
    if database.engine.unknown_table(failure) is None:
        return False
    with state.exclusive():
        found = prepare_database(database)
        if not _connector(database).would_skip(found, failure):
            return False
        _run(database, found, words)
        return True


def _run(database: SourceDatabase, found: Checked, words: Words) -> None:
    ran = _connector(database).ensure_running(found, recreate=True)
    replace_left_out(database.state, database.source, found.left_out, ran.gone, words)


def _connector(database: SourceDatabase) -> SourceConnector:
    keeper = ConnectorKeeper(ConnectRest(database.settings.connect_url), threading.Event())
    deployment = deployment_here(database.lake, database.state, database.settings)
    return SourceConnector(database, deployment, keeper)
