"""A ledger is read back as it was written, and is refused if this version cannot understand it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_app.ledger.ledger import FORMAT_VERSION, Ledger, LedgerError, SourceTimes, Truncate

PARTITIONS = st.integers(0, 9)
NUMBERS = st.integers(0, 2**62)
SOURCE_POSITIONS = st.binary(max_size=24)
LEDGERS = st.builds(
    Ledger,
    topic=st.text(),
    epoch=st.integers(0, 100),
    topic_id=st.none() | st.text(),
    positions=st.dictionaries(PARTITIONS, NUMBERS),
    applied=st.dictionaries(PARTITIONS, SOURCE_POSITIONS),
    applied_ts_us=st.dictionaries(PARTITIONS, NUMBERS),
    truncate=st.none()
    | st.builds(Truncate, PARTITIONS, NUMBERS, SOURCE_POSITIONS, SOURCE_POSITIONS, NUMBERS),
    key_columns=st.lists(st.text()).map(tuple),
    buckets=st.none() | st.integers(1, 1024),
    events=NUMBERS,
    deletes=NUMBERS,
    quarantined=NUMBERS,
    source_times=st.none() | st.builds(SourceTimes, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
)


@given(LEDGERS)
def test_a_ledger_is_read_back_as_it_was_written(ledger: Ledger) -> None:
    assert Ledger.from_json(ledger.to_json()) == ledger


@given(LEDGERS)
def test_the_next_commit_keeps_the_position_and_counts_from_zero(ledger: Ledger) -> None:
    following = ledger.next_commit()

    assert (following.positions, following.applied) == (ledger.positions, ledger.applied)
    assert (following.events, following.deletes, following.quarantined) == (0, 0, 0)
    assert following.source_times is None


@given(LEDGERS)
def test_a_ledger_without_a_topic_id_is_read(ledger: Ledger) -> None:
    written = json.loads(ledger.to_json())
    del written["topic_id"]

    assert Ledger.from_json(json.dumps(written)) == replace(ledger, topic_id=None)


@given(LEDGERS, st.none() | st.text())
def test_a_new_epoch_begins_at_the_beginning_and_forgets_nothing_of_the_source(
    ledger: Ledger, topic_id: str | None
) -> None:
    following = ledger.next_epoch(topic_id)

    assert (following.epoch, following.topic_id, following.positions) == (ledger.epoch + 1, topic_id, {})
    assert (following.applied, following.key_columns) == (ledger.applied, ledger.key_columns)
    assert following.events == 0


@given(LEDGERS, st.integers().filter(lambda version: version != FORMAT_VERSION))
def test_a_ledger_of_another_version_is_refused_by_its_number(ledger: Ledger, version: int) -> None:
    other = json.dumps({**json.loads(ledger.to_json()), "version": version})

    with pytest.raises(LedgerError, match=str(version)):
        Ledger.from_json(other)
