"""Reconcile all sources of a workspace's lake."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.items import ItemLink, reconcile_items
from tributary.operations.reconcile.proof import Reconciliation, SourceLink, TableProof, reconcile
from tributary.operations.source_links import item_links
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

    return reconcile_links(workspace.links(), item_links(workspace), patience)


def reconcile_links(
    connected: Iterable[SourceLink], items: Iterable[ItemLink], patience: Callable[[], Patience]
) -> Reconciliation:
    """Compare every table of these sources with the lake, each with a new patience.

    Raises `LakeBehind`, `ItemsUnreadable`."""
    tables: tuple[TableProof, ...] = ()
    for link in connected:
        tables += reconcile(link, patience()).tables
    for item_link in items:
        tables += reconcile_items(item_link, patience())
    return Reconciliation(tables)
