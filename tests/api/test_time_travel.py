"""A moment in the past selects one commit. It is refused if the table no longer holds that state whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

from spark_app.ledger.ledger import RETYPED_KEY
from tributary.api.tables import LakeTable
from tributary.api.time_travel import NotAMoment, OutOfHistory, ReadInSpark, check_readable, instant_of
from tributary.api.timeline import earliest_retained
from tributary.contract.table_name import TableName

FILES: Any = LocalFileSystem()
INSTANTS = ["20260102030405678", "20260102040000000", "20260102050000000"]


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_a_time_is_the_instant_of_its_millisecond_in_utc(moment: datetime, zone: timezone) -> None:
    expected = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03}"
    assert instant_of(moment.isoformat(" ")) == expected
    assert instant_of(moment.replace(tzinfo=UTC).astimezone(zone).isoformat()) == expected
    assert instant_of(expected) == expected


@pytest.mark.parametrize("text", ["", "noon", "2026010203040567", "2026-13-01"])
def test_a_text_that_is_not_a_moment_is_refused(text: str) -> None:
    with pytest.raises(NotAMoment, match="neither an instant nor a time"):
        instant_of(text)


def test_a_state_is_readable_from_the_first_commit_on_that_the_cleanings_have_left_whole(
    tmp_path: Path,
) -> None:
    table = _table(tmp_path)
    with pytest.raises(OutOfHistory, match="no commit yet"):
        check_readable(FILES, table, "20260101000000000")
    for instant in INSTANTS:
        check_readable(FILES, table, instant)

    # The timeline keeps only the latest commits. The names of the files show the earlier ones.
    (tmp_path / "region=1").mkdir()
    (tmp_path / "region=1" / f"0000-0_0-1-2_{INSTANTS[0]}.parquet").touch()
    (tmp_path / ".hoodie" / f"{INSTANTS[0]}.deltacommit").unlink()
    check_readable(FILES, table, INSTANTS[0])
    with pytest.raises(OutOfHistory, match=f"expected {INSTANTS[0]} or later"):
        check_readable(FILES, table, str(int(INSTANTS[0]) - 1))

    for number, retained in enumerate(["", INSTANTS[1], ""]):
        (tmp_path / ".hoodie" / f"2026010306000000{number}.clean").write_bytes(_clean_metadata(retained))
    with pytest.raises(OutOfHistory, match=f"expected {INSTANTS[1]} or later"):
        check_readable(FILES, table, str(int(INSTANTS[1]) - 1))
    check_readable(FILES, table, INSTANTS[1])


def test_a_state_from_before_a_rebuild_that_changed_a_type_is_left_to_spark(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _commit(tmp_path, "20260102055900000.replacecommit", {})
    _commit(tmp_path, "20260102060000000.replacecommit", {RETYPED_KEY: json.dumps([])})
    check_readable(FILES, table, INSTANTS[-1])

    _commit(tmp_path, "20260102070000000.replacecommit", {RETYPED_KEY: json.dumps(["amount"])})
    check_readable(FILES, table, "20260102070000000")
    for instant in ("20260102060000000", INSTANTS[-1]):
        with pytest.raises(ReadInSpark, match="another type of amount"):
            check_readable(FILES, table, instant)


@given(st.text(), st.text(), st.integers(-(2**40), 2**40))
def test_the_field_of_a_cleaning_is_found_after_any_other_fields(
    retained: str, start: str, millis: int
) -> None:
    assert earliest_retained(_clean_metadata(retained, start, millis)) == retained


def _table(folder: Path) -> LakeTable:
    (folder / ".hoodie").mkdir()
    for instant in INSTANTS:
        _commit(folder, f"{instant}.deltacommit", {})
    return LakeTable(TableName("shop", "public", "orders"), str(folder))


def _commit(folder: Path, name: str, metadata: dict[str, str]) -> None:
    (folder / ".hoodie" / name).write_text(json.dumps({"extraMetadata": metadata}))


def _clean_metadata(retained: str, start: str = "20260103060000000", millis: int = 12) -> bytes:
    """Return an Avro file of one HoodieCleanMetadata, up to the field that the reader looks for."""
    record = _avro_text(start) + _avro_long(millis) + _avro_long(3) + _avro_text(retained)
    header = _avro_long(1) + _avro_text("avro.schema") + _avro_text("{}") + _avro_long(0)
    return b"Obj\x01" + header + bytes(16) + _avro_long(1) + _avro_long(len(record)) + record + bytes(16)


def _avro_text(text: str) -> bytes:
    return _avro_long(len(text.encode())) + text.encode()


def _avro_long(number: int) -> bytes:
    rest = number * 2 if number >= 0 else -number * 2 - 1
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])
