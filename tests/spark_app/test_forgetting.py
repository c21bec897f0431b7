"""A key is forgotten everywhere, and old events go from bronze without losing a row."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.topic_checks import PositionLost
from spark_app.positions.postgres import PostgresLog
from spark_app.reports import Erased
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.event import OffsetRange
from spark_app.table.connector_keys import ConnectorKeyEvents
from spark_app.table.erase import erase_keys
from spark_app.table.key_events import NotErased
from spark_app.table.quarantine import read_quarantine
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.table.trim import HeldEvents, delete_events, first_kept, trim_removed, trim_table
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.test_bronze import COLUMNS, Bronze, bronze
from tributary.contract.lake import TablePolicy

__all__ = ["bronze"]

SECRET = "secretvalue"
NOW_MS = int(time.time() * 1000)

Rows = Sequence[tuple[object, ...]]


def land(bronze: Bronze, rows: Rows, age: timedelta = timedelta()) -> None:
    moment = NOW_MS - int(age.total_seconds() * 1000)
    landed = [(*row[:3], moment, *row[4:]) for row in rows]
    bronze.spark.createDataFrame(landed, COLUMNS).coalesce(1).writeTo(bronze.table).append()


def table_in(bronze: Bronze, folder: Path, policy: TablePolicy) -> TableIngest:
    return TableIngest(
        name="source.public.things",
        topic=TOPIC,
        source=bronze.source,
        hudi=HudiTable(bronze.spark, str(folder / "silver"), "things", policy),
        quarantine_path=str(folder / "quarantine"),
        form=TopicForm(PostgresLog()),
    )


def erase(table: TableIngest, keys: Sequence[Mapping[str, str]]) -> Erased:
    return erase_keys(table, keys, ConnectorKeyEvents.of(table))


def _rows(table: TableIngest) -> dict[int, tuple[str, str | None]]:
    return {row["id"]: (row["name"], row["body"]) for row in table.hudi.read().collect()}


def _where_in_files(folder: Path, text: str) -> set[str]:
    """Return the top folders with files that hold the text, also compressed."""
    found = set()
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += repr(pq.ParquetFile(path).read().to_pylist()).encode()
        if text.encode() in content:
            found.add(path.relative_to(folder).parts[0])
    return found


def _history() -> SourceTable:
    """Rows of which the one with key 1 has the secret. It is deleted, and its key had been 11 before."""
    shop = SourceTable(identity="full")
    shop.begin()
    for key in (0, 2, 3, 11):
        shop.insert(key, f"{SECRET} first" if key == 11 else "first", f"body of {key}")
    shop.commit()
    shop.begin()
    shop.move(11, 1)
    shop.update(1, f"{SECRET} second", None, body_is_unchanged=True)
    shop.update(3, "second", None, body_is_unchanged=True)
    shop.commit()
    return shop


POLICIES = {
    "merge on read": {},
    "soft deletes": {"deletes": "soft"},
    "copy on write": {"storage": "copy_on_write"},
}


@pytest.mark.parametrize("policy", first_then_long(POLICIES.values()), ids=POLICIES)
def test_a_forgotten_key_is_in_no_file_and_the_table_is_rebuilt_the_same(
    bronze: Bronze, tmp_path: Path, policy: dict[str, str]
) -> None:
    bronze.create()
    shop = _history()
    sent = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    bad = (TOPIC, 0, len(sent), None, sent[5][4], bytearray(f"garbage {SECRET}", "ascii"), None, None)
    land(bronze, [*sent, bad])
    table = table_in(bronze, tmp_path, TablePolicy.model_validate(policy))
    table.apply((OffsetRange(0, 0, 4),))
    table.apply((OffsetRange(0, 4, len(sent) + 1),))

    with pytest.raises(NotErased, match="still in the source"):
        erase(table, [{"id": "1"}])
    with pytest.raises(NotErased, match="This is not the key of the table"):
        erase(table, [{"name": "1"}])
    assert _where_in_files(tmp_path, SECRET) == {"lake", "silver", "quarantine"}

    before = len(shop.events)
    shop.begin()
    shop.delete(1)
    shop.update(3, "third", None, body_is_unchanged=True)
    shop.commit()
    later = [event_row(event, before + 1 + n) for n, event in enumerate(shop.events[before:])]
    land(bronze, later)
    with pytest.raises(NotErased, match="has not applied all events"):
        erase(table, [{"": "1"}])
    end = len(sent) + 1 + len(later)
    table.apply((OffsetRange(0, len(sent) + 1, end),))

    with pytest.raises(NotErased, match="still in the source"):
        erase(table, [{"": "1"}, {"": "2"}])  # Then no key is erased.
    if policy:
        erased = erase(table, [{"": "1"}])
        assert erased.keys == ({"id": "1"},)
        assert [json.loads(key) for key in erased.linked] == [{"id": 11}]
        assert erased.rows == (1 if policy.get("deletes") == "soft" else 0)
        former = erase(table, [{"id": "11"}])
        assert former.quarantined + erased.quarantined == 1
        assert former.events + erased.events == 8
    else:
        both = erase(table, [{"": "1"}, {"id": "11"}, {"id": "4711"}])
        assert both.keys == ({"id": "1"}, {"id": "11"}, {"id": "4711"})
        assert both.unknown == ({"id": "4711"},)
        assert (both.events, both.quarantined, both.linked) == (8, 1, ())

    assert _where_in_files(tmp_path, SECRET) == set()
    expected = {0: ("first", "body of 0"), 2: ("first", "body of 2"), 3: ("third", "body of 3")}
    assert _rows(table) == expected
    assert table.ledger.positions == {0: end}
    assert read_quarantine(bronze.spark, table.quarantine_path, 0) is None

    instant = table.hudi.timeline().last_instant
    assert erase(table, [{"id": "1"}]).events == erase(table, [{"id": "4711"}]).rows == 0
    assert table.hudi.timeline().last_instant == instant  # No history was lost for a wrong key.
    rebuild_table(table)
    assert {key: row for key, row in _rows(table).items() if key in shop.rows} == expected
    assert _where_in_files(tmp_path, SECRET) == set()
    table.forget()
    assert table.ledger.positions == {0: end}


def _trimmed(bronze: Bronze, folder: Path) -> tuple[SourceTable, TableIngest]:
    """Return a table whose first ten events are old, and of which the last two are not applied."""
    bronze.create()
    shop = SourceTable()
    shop.begin()
    for key in range(12):
        shop.insert(key, "first", None)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    land(bronze, rows[:10], age=timedelta(days=40))
    land(bronze, rows[10:])
    table = table_in(bronze, folder, TablePolicy())
    table.apply((OffsetRange(0, 0, 10),))
    return shop, table


def test_old_events_that_are_applied_go_and_a_rebuild_refuses(bronze: Bronze, tmp_path: Path) -> None:
    _, table = _trimmed(bronze, tmp_path)
    upkeep = BronzeUpkeep(bronze.spark, bronze.table)

    assert trim_table(table, upkeep, timedelta(days=60)).events == 0
    trimmed = trim_table(table, upkeep, timedelta(days=30))
    assert (trimmed.events, trimmed.kept_from) == (10, {0: 10})
    assert trim_table(table, upkeep, timedelta(days=30)).events == 0

    table.apply((OffsetRange(0, 10, 12),))
    assert sorted(_rows(table)) == list(range(12))
    with pytest.raises(PositionLost, match="does not hold the first events") as error:
        rebuild_table(table)
    assert any("retention" in str(remedy) for remedy in error.value.remedies)
    assert sorted(_rows(table)) == list(range(12))

    # A table that starts over notices, too.
    anew = table_in(bronze, tmp_path / "anew", TablePolicy())
    with pytest.raises(PositionLost):
        anew.pending(bronze.source.extents(frozenset({TOPIC}))[TOPIC], 100)


def test_events_of_a_removed_table_go_by_their_age_or_at_once_and_no_other_table_s(
    bronze: Bronze, tmp_path: Path
) -> None:
    _trimmed(bronze, tmp_path)
    other = f"{TOPIC}_other"
    land(bronze, [(other, 0, 0, NOW_MS, None, bytearray(b"stays"), None, None)])
    upkeep = BronzeUpkeep(bronze.spark, bronze.table)

    # Nobody will apply the last two events, so the table's position does not count.
    assert trim_removed(TOPIC, upkeep, timedelta(days=60)).events == 0
    trimmed = trim_removed(TOPIC, upkeep, timedelta(days=30))
    assert (trimmed.table, trimmed.events, trimmed.kept_from) == (TOPIC, 10, {0: 10})

    assert delete_events(TOPIC, upkeep).events == 2
    assert delete_events(TOPIC, upkeep).events == 0
    assert upkeep.events(TOPIC).isEmpty()
    assert upkeep.events(other).count() == 1
    left = [pq.ParquetFile(path).read().to_pylist() for path in (tmp_path / "lake").rglob("*.parquet")]
    assert {row["k_topic"] for rows in left for row in rows} == {other}


def test_a_table_is_rebuilt_from_a_later_snapshot_after_its_first_events_are_gone(
    bronze: Bronze, tmp_path: Path
) -> None:
    shop, table = _trimmed(bronze, tmp_path)
    upkeep = BronzeUpkeep(bronze.spark, bronze.table)
    sent = len(shop.events)
    shop.snapshot()
    shop.begin()
    shop.update(3, "later", None, body_is_unchanged=False)
    shop.commit()
    land(bronze, [event_row(event, sent + n) for n, event in enumerate(shop.events[sent:])])
    table.apply((OffsetRange(0, 10, len(shop.events)),))
    trim_table(table, upkeep, timedelta(days=30))

    rebuild_table(table, since_snapshot=True)
    assert _rows(table) == {key: (row["name"], row["body"]) for key, row in shop.rows.items()}


def test_events_that_a_table_has_yet_to_apply_stay(bronze: Bronze, tmp_path: Path) -> None:
    _, table = _trimmed(bronze, tmp_path)
    upkeep = BronzeUpkeep(bronze.spark, bronze.table)
    trimmed = trim_table(table, upkeep, timedelta(seconds=-60))
    assert trimmed.kept_from == {0: 10}
    table.apply((OffsetRange(0, 10, 12),))
    # Even if all are old, the last one stays, so it is known how far bronze reaches.
    assert trim_table(table, upkeep, timedelta(seconds=-60)).kept_from == {0: 11}

    unknown = table_in(bronze, tmp_path / "none", TablePolicy())
    assert trim_table(unknown, upkeep, timedelta(seconds=-60)).events == 0


EVENTS = st.lists(
    st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=15, unique_by=lambda event: event[0]
)


@given(EVENTS, st.integers(0, 25))
def test_only_old_applied_events_go_and_only_at_the_beginning(
    events: list[tuple[int, bool]], position: int
) -> None:
    """`events`: the offset of each, and whether it is old."""
    offsets = [offset for offset, _ in events]
    young = [offset for offset, is_old in events if not is_old]
    held = HeldEvents(min(offsets), max(offsets), min(young, default=None))
    until = first_kept({0: held}, {0: position}).get(0, 0)

    gone = [(offset, is_old) for offset, is_old in events if offset < until]
    assert all(is_old and offset < position for offset, is_old in gone)
    assert len(gone) < len(events)
    assert first_kept({0: held}, {}) == {}
