"""Notice what changes rows of a source without an event, and ask for snapshots of the tables it concerns."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from connectors.engines.definitions import SilentChanges, TableDefinition, silent_changes
from tributary.contract.online_snapshot import Noticed, Reading, Record, Request, Requested
from tributary.contract.table_name import TableName
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.snapshots.record_files import Look, RecordFiles

ADDED = SilentChanges(("some of its rows can have come before it was followed",))
BACK = SilentChanges(("it was not in its source for a while",))


def notice(
    link: SourceLink, session: Any, files: RecordFiles, followed: Collection[TableName]
) -> tuple[Request, ...]:
    """Compare the source's tables with the last look, and return the snapshots that were asked for.

    The first look only takes note. A table that the lake leaves out counts as not there. The records of
    tables that are gone are removed. A table in `followed`, which has a topic or is in the lake, is an orphan
    if it is gone. One that comes back is read again. Routed events have a topic but no table of their own.
    `session` is the connector's user's. Raises the errors of the database and of S3."""
    source = link.source.name
    now = {
        table: definition
        for table, definition in link.engine.read_definitions(session, link.lake, link.source).items()
        if table not in link.left_out
    }
    before = files.read_look(source)
    requests = () if before is None else tuple(_requests(link, session, before, now))
    records = files.read()
    for table in records:
        if table.source == source and table not in now:
            files.remove(table)
    for request in requests:
        known = records.get(request.table)
        # A reading that is under way finds the table's new definition by itself.
        if not isinstance(known, Reading):
            files.write(_record(link, request if known is None else _together(known.request, request)))
    gone = frozenset(
        table
        for table in followed
        if table.source == source and table not in now and not link.source.routes_to(table.schema)
    )
    if before != (look := Look(now, gone)):
        files.write_look(source, look)
    return requests


def ask(files: RecordFiles, tables: Collection[TableName], reason: str) -> None:
    """Ask for snapshots of these tables, whatever was asked for before."""
    for table in tables:
        files.write(Requested(_request(table, SilentChanges((reason,)))))


def _record(link: SourceLink, request: Request) -> Record:
    policy = link.lake.policy(request.table)
    return Requested(request) if policy.repair == "automatic" else Noticed(request)


def _together(earlier: Request, later: Request) -> Request:
    """Return one request for the reasons of both."""
    reasons = tuple(dict.fromkeys((*earlier.reasons, *later.reasons)))
    conditions = (earlier.condition, later.condition)
    both = None if None in conditions else " OR ".join(filter(None, dict.fromkeys(conditions)))
    return replace(later, reasons=reasons, condition=both)


def _requests(
    link: SourceLink,
    session: Any,
    before: Look,
    now: Mapping[TableName, TableDefinition],
) -> Iterator[Request]:
    for table, definition in sorted(now.items()):
        if table in before.tables:
            changes = silent_changes(before.tables[table], definition)
        elif table in before.gone:
            # The lake can still have rows of the former table, of which nobody has said that they are gone.
            changes = BACK
        else:
            is_unseen = not definition.followed and link.engine.has_rows(session, table)
            changes = ADDED if is_unseen else None
        if changes is not None:
            yield _request(table, changes)


def _request(table: TableName, changes: SilentChanges) -> Request:
    return Request(str(uuid4()), table, changes.reasons, time.time_ns() // 1000, changes.condition)
