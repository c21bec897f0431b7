"""Reconcile all sources of a workspace's lake."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.items import reconcile_items
from tributary.operations.reconcile.proof import Reconciliation, TableProof, reconcile
from tributary.operations.source_links import item_links, source_links
from tributary.operations.workspace import Workspace


def reconcile_lake(
    workspace: Workspace,
    wait_seconds: float,
    tell: Callable[[str], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> Reconciliation:
    """Compare every table of every source with the lake. Raises `LakeBehind`, `ItemsUnreadable`.

    While an ingest runs, wait up to `wait_seconds` for each source, or until `stop` is set. `tell` hears what
    is compared."""

    def patience() -> Patience:
        return Patience.of(wait_seconds, tell, stop)

    tables: tuple[TableProof, ...] = ()
    if workspace.lake.connected_sources:
        for link in source_links(workspace):
            tables += reconcile(link, patience()).tables
    for item_link in item_links(workspace):
        tables += reconcile_items(item_link, patience())
    return Reconciliation(tables)
