"""Forget keys: their events in bronze, their versions in the table, and their events in quarantine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.reports import Erased
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import (
    BronzeUpkeep,
    has_key,
    key_condition,
    text_of_event_key,
    text_of_key,
)
from spark_app.sources.event import positions_text
from spark_app.table.quarantine import read_quarantine, replace_quarantine
from spark_app.table.rebuild import PATIENCE_SECONDS
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import Ingest

DELETED = "_deleted"
_SECONDS_BETWEEN_LOOKS = 2.0
_MOST_NAMED = 5
"""The most rows that an error names."""


class NotErased(TributaryError):
    """The keys cannot be forgotten now. Nothing was changed."""


def erase_keys(
    table: TableIngest, keys: Sequence[Mapping[str, str]], patience_seconds: float = PATIENCE_SECONDS
) -> Erased:
    """Remove keys from the lake whose rows are gone from the source.

    The table's files are rewritten without the keys, and all its earlier states are removed. The keys' events
    in bronze are blanked. Their offsets stay, so that a rebuild still knows that it has all events. All keys
    together take as many passes as one. Nothing else may write to the table meanwhile. After an interruption
    it can be repeated. Raises `NotErased`; then no key was erased.
    """
    bronze = _bronze_of(table)
    columns = table.ledger.key_columns
    keys = [_with_names(table, key, columns) for key in keys]
    _check_complete(table, bronze, patience_seconds)
    upkeep = BronzeUpkeep(bronze.spark, bronze.table)
    events = upkeep.events(table.topic).where(has_key(keys))
    text = F.expr(text_of_event_key(columns)).alias("text")
    found = events.select("k_partition", "k_offset", text).collect()
    places = [(row["k_partition"], row["k_offset"]) for row in found]
    linked = _linked(events, keys) if found else ()
    # If bronze has all events and none of a key, the table never had it, or an interrupted run erased it.
    are_unknown = not places and not any(
        bronze.extents(frozenset({table.topic}))[table.topic].beginning.values()
    )
    rows = 0 if are_unknown else _erase_rows(table, keys, places)
    quarantined = _erase_quarantined(table, keys)
    if places:
        upkeep.blank(table.topic, key_condition(keys))
    # Also without such events: an interrupted run may have left the snapshots that still hold them.
    upkeep.expire_all_snapshots_but_one()
    texts = {row["text"] for row in found}
    unknown = tuple(key for key in keys if text_of_key(key) not in texts)
    return Erased(table.name, tuple(keys), len(places), rows, quarantined, linked, unknown)


def _bronze_of(table: TableIngest) -> BronzeSource:
    if table.items is not None:
        # The key of a record in bronze is its sequence number, so a search for an item's key finds none.
        raise NotErased(
            what="Keys can only be erased from tables that Debezium reads",
            where=table.name,
            found="a table of DynamoDB",
            remedy="The records of its items stay in bronze: see docs/privacy.md, section DynamoDB.",
        )
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
    return {name: key[name] for name in columns}


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


def _linked(events: DataFrame, keys: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the other keys that the row had before or got later, as JSON."""
    headers = [name for name in ("moved_to", "moved_from") if name in events.columns]
    found = set()
    for name in headers:
        text = F.expr(f"decode({name}, 'UTF-8')")
        other = F.coalesce(F.get_json_object(text, "$.payload"), text)
        is_other = F.col(name).isNotNull() & ~F.coalesce(F.expr(key_condition(keys, name)), F.lit(False))
        found |= {row[0] for row in events.where(is_other).select(other).distinct().collect()}
    return tuple(sorted(found))


def _erase_rows(table: TableIngest, keys: Sequence[Mapping[str, str]], places: list[tuple[int, int]]) -> int:
    """Rewrite the table without the keys' rows, and remove all earlier states. Return how many there were."""
    if not table.state.has_table:
        return 0
    stored = table.stored()
    parts = [
        part
        for value in (F.col(name).cast("string") for name in keys[0])
        for part in (F.char_length(value), F.lit(":"), value)
    ]
    is_its = F.concat(*parts).isin([text_of_key(key) for key in keys])
    # The text of a date or a number can be another one than in JSON. So the row's last event counts, too.
    is_its = is_its | _is_from(places)
    its = stored.where(is_its)
    found = its.count()
    live = its.where(~F.col(DELETED)) if DELETED in stored.columns else its
    if found and (still_there := live.select(*keys[0]).limit(_MOST_NAMED).collect()):
        raise NotErased(
            what="A row is still in the source",
            where=table.name,
            found="; ".join(", ".join(f"{n}={v}" for n, v in row.asDict().items()) for row in still_there),
            expected="keys whose rows were deleted",
            remedy=["Delete it in the source. Otherwise its next change brings it back.", Ingest()],
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


def _erase_quarantined(table: TableIngest, keys: Sequence[Mapping[str, str]]) -> int:
    epoch = table.ledger.epoch
    found = read_quarantine(table.hudi.spark, table.quarantine_path, epoch)
    if found is None:
        return 0
    rows, folders = found
    others = rows.where(~F.coalesce(has_key(keys), F.lit(False))).localCheckpoint()
    removed = rows.count() - others.count()
    if removed:
        replace_quarantine(others, table.quarantine_path, f"e{epoch}-erased-{time.time_ns()}", folders)
    return int(removed)
