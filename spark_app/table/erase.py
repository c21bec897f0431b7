"""Forget keys: their events in bronze, their versions in the table, and their events in quarantine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.reports import Erased
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import places_condition
from spark_app.sources.event import positions_text
from spark_app.table.key_events import FoundKeys, Key, KeyEvents, NotErased
from spark_app.table.quarantine import read_quarantine, replace_quarantine
from spark_app.table.rebuild import PATIENCE_SECONDS
from spark_app.table.table_ingest import TableIngest
from tributary.contract.remedies import Ingest

DELETED = "_deleted"
_SECONDS_BETWEEN_LOOKS = 2.0
_MOST_NAMED = 5
"""The most rows that an error names."""


def erase_keys(
    table: TableIngest,
    keys: Sequence[Key],
    events: KeyEvents,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Erased:
    """Remove keys from the lake whose rows are gone from the source.

    The table's files are rewritten without the keys, and all its earlier states are removed. The keys'
    `events` in bronze are blanked. Their offsets stay, so that a rebuild still knows that it has all events.
    All keys together take as many passes as one. Nothing else may write to the table meanwhile. After an
    interruption it can be repeated. Raises `NotErased`; then no key was erased.
    """
    columns = table.ledger.key_columns
    keys = [_with_names(table, key, columns) for key in keys]
    _check_complete(table, events.bronze, patience_seconds)
    events.check()
    found = events.find(keys)
    rows = _rows_of(table, found, columns)
    found.check(rows)
    # If bronze has all events and none of a key, the table never had it, or an interrupted run erased it.
    extent = events.bronze.extents(frozenset({table.topic}))[table.topic]
    are_unknown = not found.events and not any(extent.beginning.values())
    erased = 0 if are_unknown or rows is None else _erase_rows(table, found, rows)
    quarantined = _erase_quarantined(table, found)
    linked = found.linked
    found.forget()
    table.forget()
    return Erased(
        table.name,
        tuple(keys),
        found.events,
        erased,
        quarantined,
        linked,
        found.unknown,
        None if found.in_stream_until is None else found.in_stream_until.isoformat(timespec="seconds"),
    )


def _with_names(table: TableIngest, key: Mapping[str, str], columns: tuple[str, ...]) -> Key:
    """Return the key with the names of its columns. A key without a name is the value of the only column."""
    if set(key) == {""} and len(columns) == 1:
        return {columns[0]: key[""]}
    if set(key) != set(columns):
        raise NotErased(
            what="This is not the key of the table",
            where=table.name,
            found=", ".join(key) if set(key) != {""} else "one value",
            expected=f"a value for {', '.join(columns)}" if columns else "a table with rows",
        )
    return {name: key[name] for name in columns}


def _check_complete(table: TableIngest, bronze: BronzeSource, patience_seconds: float) -> None:
    """Check that table and bronze hold all events, so that none of the key comes later."""
    topics = frozenset({table.topic})
    extent = table.source.extents(topics)[table.topic]
    if (problem := extent.problem) is not None:
        raise NotErased(
            what=problem.what,
            where=problem.where,
            found=problem.found,
            expected=problem.expected,
            remedy=problem.remedies,
        )
    wanted = extent.end
    if table.behind(extent):
        raise NotErased(
            what="The table has not applied all events of its topic",
            where=table.name,
            found=f"events up to {positions_text(table.ledger.positions)}",
            expected=f"events up to {positions_text(wanted)}",
            remedy=Ingest(),
        )
    deadline = time.monotonic() + patience_seconds
    while True:
        landed = bronze.extents(topics)[table.topic].end
        if all(landed.get(partition, 0) >= end for partition, end in wanted.items()):
            return
        if time.monotonic() >= deadline:
            raise NotErased(
                what="The sink has not landed all events in bronze yet",
                where=f"topic {table.topic}",
                found=f"events up to {positions_text(landed)}",
                expected=f"events up to {positions_text(wanted)}",
                remedy="Wait until it has, and erase again.",
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _rows_of(table: TableIngest, found: FoundKeys, columns: Sequence[str]) -> DataFrame | None:
    """Return the keys' rows in the table; None if there is no table.

    Raises `NotErased` if one of them is not deleted."""
    if not table.state.has_table:
        return None
    stored = table.stored()
    its = stored.where(_is_of(found))
    live = its.where(~F.col(DELETED)) if DELETED in stored.columns else its
    # Bytes are in base64, as the keys are.
    texts = [
        (F.base64(name) if dict(stored.dtypes)[name] == "binary" else F.col(name)).alias(name)
        for name in columns
    ]
    if still_there := live.select(*texts).limit(_MOST_NAMED).collect():
        raise NotErased(
            what="A row is still in the source",
            where=table.name,
            found="; ".join(", ".join(f"{n}={v}" for n, v in row.asDict().items()) for row in still_there),
            expected="keys whose rows were deleted",
            remedy=["Delete it in the source. Otherwise its next change brings it back.", Ingest()],
        )
    return its


def _erase_rows(table: TableIngest, found: FoundKeys, rows: DataFrame) -> int:
    """Rewrite the table without the rows, and remove all earlier states. Return how many rows there were."""
    count = rows.count()
    table.rewrite(table.stored().where(~_is_of(found)))
    table.hudi.forget_earlier_states()
    return count


def _is_of(found: FoundKeys) -> Column:
    # The text of a date or a number can be another one than in JSON. So the row's last event counts, too.
    return found.of_rows() | F.expr(places_condition(found.places, "_partition", "_offset"))


def _erase_quarantined(table: TableIngest, found: FoundKeys) -> int:
    epoch = table.ledger.epoch
    quarantine = read_quarantine(table.hudi.spark, table.quarantine_path, epoch)
    if quarantine is None:
        return 0
    rows, folders = quarantine
    others = rows.where(~found.of_quarantined()).localCheckpoint()
    removed = rows.count() - others.count()
    if removed:
        replace_quarantine(others, table.quarantine_path, f"e{epoch}-erased-{time.time_ns()}", folders)
    return int(removed)
