"""The rows that ask Debezium to read a table again (io.debezium.pipeline.signal)."""

from __future__ import annotations

import json
import re

from connectors.engines.binlog.preparation import signals_of
from connectors.engines.binlog.session import Session, execute
from connectors.engines.engine import NotReadable
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request
from tributary.contract.remedies import TakeSnapshot


def ask_for_snapshot(session: Session, lake: Lake, source: BinlogSource, request: Request) -> None:
    """Ask Debezium to read a table again. To ask again for the same request changes nothing.

    Raises `NotReadable`.
    """
    data = {"type": "INCREMENTAL", "data-collections": [_collection(request)]}
    execute(
        session,
        f"INSERT IGNORE INTO {signals_of(lake, source)} (id, type, data) VALUES (%s, 'execute-snapshot', %s)",
        (request.id, json.dumps(data)),
    )


def forget_request(session: Session, lake: Lake, source: BinlogSource, request: Request) -> None:
    """Remove the row of a request that is over."""
    execute(session, f"DELETE FROM {signals_of(lake, source)} WHERE id = %s", (request.id,))


def _collection(request: Request) -> str:
    """Return the table as Debezium takes it: a regular expression. Raises `NotReadable` if it takes none.

    If no table matches the expression, Debezium reads it as a name. Of names, it removes quotes and splits
    them at dots (io.debezium.relational.TableIdParser), also when it reads its offset again.
    """
    parts = (request.table.schema, request.table.table)
    if any(re.search(r"""[\s"'`.]""", part) for part in parts):
        raise NotReadable(
            "Debezium cannot read this table alone, because of the characters in its name",
            where=str(request.table),
            remedy=TakeSnapshot(request.table.source),
        )
    # A dot of an expression matches the dot between the names only: no other place of a name has one.
    return ".".join(map(re.escape, parts))
