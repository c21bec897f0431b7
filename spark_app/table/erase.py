"""Forget a key: its events in bronze, its versions in the table, and its events in quarantine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.reports import Erased
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import BronzeUpkeep, has_key, key_condition
from spark_app.sources.event import positions_text
from spark_app.table.quarantine import read_quarantine, replace_quarantine
from spark_app.table.rebuild import PATIENCE_SECONDS
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import Ingest

DELETED = "_deleted"
_SECONDS_BETWEEN_LOOKS = 2.0


class NotErased(TributaryError):
    """The key cannot be forgotten now. Nothing was changed."""


def erase_key(
    table: TableIngest, key: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS
) -> Erased:
    """Remove a key from the lake whose row is gone from the source.

    The table's files are rewritten without the key, and all its earlier states are removed. The key's events
    in bronze are blanked. Their offsets stay, so that a rebuild still knows that it has all events. Nothing
    else may write to the table meanwhile. After an interruption it can be repeated. Raises `NotErased`.
    """
    bronze = _bronze_of(table)
    columns = table.ledger.key_columns
    key = _with_names(table, key, columns)
    _check_complete(table, bronze, patience_seconds)
    upkeep = BronzeUpkeep(bronze.spark, bronze.table)
    events = upkeep.events(table.topic).where(has_key(key))
    places = [
        (row["k_partition"], row["k_offset"]) for row in events.select("k_partition", "k_offset").collect()
    ]
    linked = _linked(events, key)
    # If bronze has all events and none of the key, the table never had it, or an interrupted run erased it.
    is_unknown = not places and not any(
        bronze.extents(frozenset({table.topic}))[table.topic].beginning.values()
    )
    rows = 0 if is_unknown else _erase_rows(table, key, places)
    quarantined = _erase_quarantined(table, key)
    if places:
        upkeep.blank(table.topic, key_condition(key))
    # Also without such events: an interrupted run may have left the snapshots that still hold them.
    upkeep.expire_all_snapshots_but_one()
    return Erased(table.name, key, len(places), rows, quarantined, linked)


def _bronze_of(table: TableIngest) -> BronzeSource:
    source = table.parts.reader.older or table.source
    if not isinstance(source, BronzeSource):
        raise NotErased(what="A key can only be erased from bronze", where=table.name)
    return source


def _with_names(table: TableIngest, key: Mapping[str, str], columns: tuple[str, ...]) -> Mapping[str, str]:
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
    return key


def _check_complete(table: TableIngest, bronze: BronzeSource, patience_seconds: float) -> None:
    """Check that table and bronze hold all events, so that none of the key comes later."""
    topics = frozenset({table.topic})
    wanted = table.source.extents(topics)[table.topic].end
    if table.behind(table.source.extents(topics)[table.topic]):
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


def _linked(events: DataFrame, key: Mapping[str, str]) -> tuple[str, ...]:
    """Return the other keys that the row had before or got later, as JSON."""
    headers = [name for name in ("moved_to", "moved_from") if name in events.columns]
    found = set()
    for name in headers:
        text = F.expr(f"decode({name}, 'UTF-8')")
        other = F.coalesce(F.get_json_object(text, "$.payload"), text)
        is_other = F.col(name).isNotNull() & ~F.coalesce(F.expr(key_condition(key, name)), F.lit(False))
        found |= {row[0] for row in events.where(is_other).select(other).distinct().collect()}
    return tuple(sorted(found))


def _erase_rows(table: TableIngest, key: Mapping[str, str], places: list[tuple[int, int]]) -> int:
    """Rewrite the table without the key's row, and remove all earlier states. Return how many rows it had."""
    if not table.state.has_table:
        return 0
    stored = table.stored()
    is_its = reduce(lambda a, b: a & b, [F.col(name).cast("string") == text for name, text in key.items()])
    # The text of a date or a number can be another one than in JSON. So the row's last event counts, too.
    is_its = is_its | _is_from(places)
    its = stored.where(is_its)
    found = its.count()
    live = its.where(~F.col(DELETED)) if DELETED in stored.columns else its
    if found and not live.isEmpty():
        raise NotErased(
            what="The row is still in the source",
            where=table.name,
            found=", ".join(f"{name}={text}" for name, text in key.items()),
            expected="a key whose row was deleted",
            remedy=["Delete the row in the source. Otherwise its next change brings it back.", Ingest()],
        )
    table.rewrite(stored.where(~is_its))
    table.hudi.forget_earlier_states()
    return found


def _is_from(places: list[tuple[int, int]]) -> Column:
    by_partition: dict[int, list[int]] = {}
    for partition, offset in places:
        by_partition.setdefault(partition, []).append(offset)
    conditions = [
        (F.col("_partition") == partition) & F.col("_offset").isin(offsets)
        for partition, offsets in by_partition.items()
    ]
    return reduce(lambda a, b: a | b, conditions, F.lit(False))


def _erase_quarantined(table: TableIngest, key: Mapping[str, str]) -> int:
    epoch = table.ledger.epoch
    found = read_quarantine(table.hudi.spark, table.quarantine_path, epoch)
    if found is None:
        return 0
    rows, folders = found
    others = rows.where(~F.coalesce(has_key(key), F.lit(False))).localCheckpoint()
    removed = rows.count() - others.count()
    if removed:
        replace_quarantine(others, table.quarantine_path, f"e{epoch}-erased-{time.time_ns()}", folders)
    return int(removed)
