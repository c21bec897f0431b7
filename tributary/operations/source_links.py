"""Links to the sources of a workspace's lake, for reconciling."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.connect_rest import GLANCE_SECONDS, ConnectorUnknown, ConnectRest
from tributary.api.event_payloads import EventPayloads
from tributary.local.connector_renewal import renew_connector
from tributary.local.databases import SourceDatabase
from tributary.local.hash_salt import hash_salt
from tributary.local.left_out import read_left_out
from tributary.local.process import read_process
from tributary.local.s3 import REGION
from tributary.local.schema_registry import registry_of
from tributary.local.spark import SERVICE as SPARK
from tributary.operations.pauses import pause_files
from tributary.operations.reconcile.items import ItemLink, dynamodb_client
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.remedy_words import remedy_words
from tributary.operations.snapshots.keeper import record_files
from tributary.operations.snapshots.record_files import read_known, read_reasons

if TYPE_CHECKING:
    from tributary.operations.workspace import Workspace


_SECONDS_OF_A_RENEWAL = 30.0
"""How long a connector that another process renews may be away."""
_POLL_SECONDS = 0.5


def source_links(workspace: Workspace) -> tuple[SourceLink, ...]:
    """Return a link for each source. Raises PipelineDown."""
    workspace.require("kafka", "connect")
    left_out = read_left_out(workspace.state, workspace.lake)
    connect = ConnectRest(workspace.settings.connect_url, GLANCE_SECONDS)
    return tuple(
        SourceLink(
            lake=workspace.lake,
            source=source,
            # Debezium's user may read all tables that the lake takes, and write the heartbeat.
            connect=SourceDatabase(
                workspace.lake, source, workspace.state, workspace.settings
            ).connect_for_replication,
            kafka=workspace.kafka,
            files=workspace.files,
            silver=workspace.open_lake.silver,
            read_offset=partial(offset_of, connect, workspace.lake.source_names(source).connector),
            read_paused=pause_files(workspace).read,
            hash_salt=(
                partial(hash_salt, workspace.lake, workspace.settings)
                if workspace.lake.hashes_columns_of(source)
                else None
            ),
            read_left_out_later=partial(read_reasons, record_files(workspace), workspace.lake),
            read_known=partial(read_known, record_files(workspace), source.name),
            read_config=partial(config_of, connect, workspace.lake.source_names(source).connector),
            renew=partial(
                renew_connector, workspace.lake, source, workspace.state, workspace.settings, remedy_words
            ),
            left_out={name: " ".join(one.reasons) for name, one in left_out.items()},
            payloads=EventPayloads(registry_of(workspace.lake, workspace.settings)),
        )
        for source in workspace.lake.connected_sources
    )


def item_links(workspace: Workspace) -> tuple[ItemLink, ...]:
    """Return a link for each source of items."""
    here = workspace.settings.dynamodb_endpoint
    return tuple(
        ItemLink(
            lake=workspace.lake,
            source=source,
            dynamodb=dynamodb_client(stream, here, REGION),
            files=workspace.files,
            silver=workspace.open_lake.silver,
            is_ingesting=read_process(SPARK, workspace.state.run) is not None,
        )
        for source in workspace.lake.item_sources
        if (stream := source.item_stream) is not None
    )


def offset_of(connect: ConnectRest, name: str, patience: float = _SECONDS_OF_A_RENEWAL) -> Any:
    """Return a connector's stored offset, or None. Raise ConnectorUnknown if it stays away."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return connect.offset(name)
        except ConnectorUnknown:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_SECONDS)


def config_of(
    connect: ConnectRest, name: str, patience: float = _SECONDS_OF_A_RENEWAL
) -> Mapping[str, str] | None:
    """Return a connector's config, or None if it stays away."""
    deadline = time.monotonic() + patience
    while (config := connect.config(name)) is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return config
