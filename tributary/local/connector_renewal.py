"""Let the connector of a running source read the tables that the check of the source takes now."""

from __future__ import annotations

import threading

from connectors.connect_rest import ConnectRest
from connectors.engines.registry import engine_of
from tributary.contract.lake import Lake
from tributary.contract.remedies import Words
from tributary.contract.source import Source
from tributary.local.connector_state import ConnectorKeeper
from tributary.local.databases import SourceDatabase, prepare_database
from tributary.local.left_out import replace_left_out
from tributary.local.servers import deployment_here
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
        found = prepare_database(SourceDatabase(lake, source, state, settings))
        deployment = deployment_here(lake, state, settings)
        connector = engine_of(source).render(lake, source, deployment, found.untaken)
        keeper = ConnectorKeeper(ConnectRest(settings.connect_url), threading.Event())
        keeper.ensure_running(connector, recreate=True)
        replace_left_out(state, lake, source, found.left_out, words)
