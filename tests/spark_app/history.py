"""Histories of a source table, and the ways in which a broker can deliver them, as Hypothesis strategies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from tests.spark_app.debezium import SentEvent, SourceTable

KEYS = range(1, 6)
NAMES = st.text(alphabet='aé😀"\\,{}', max_size=4)
BODIES = st.none() | st.text(alphabet="xyz", min_size=1, max_size=3)
ACTIONS = ("insert", "update", "update_name", "delete", "move", "truncate", "add_column")


@dataclass(frozen=True)
class Delivery:
    """What a topic holds: event `numbers[offset]` of the source's at each offset, cut into `batches`
    (offsets)."""

    numbers: tuple[int, ...]
    batches: tuple[tuple[int, int], ...]


@st.composite
def histories(draw: st.DrawFn, transactions: int = 8) -> list[SentEvent]:
    """What a table of few keys goes through: a snapshot, then transactions of every kind of change."""
    table = SourceTable()
    for key in draw(st.sets(st.sampled_from(KEYS), max_size=3)):
        table.rows[key] = {"id": key, "name": draw(NAMES), "body": draw(BODIES)}
        table.read(key)
    for _ in range(draw(st.integers(1, transactions))):
        table.begin()
        for _ in range(draw(st.integers(1, 4))):
            _act(draw, table)
        table.commit()
    return table.events


def _act(draw: st.DrawFn, table: SourceTable) -> None:
    action = draw(st.sampled_from(ACTIONS))
    present = sorted(table.rows)
    absent = [key for key in KEYS if key not in table.rows]
    if action == "truncate" and draw(st.integers(0, 2)) == 0:
        table.truncate()
    elif action == "add_column" and len(table.columns) < 5:
        table.add_column(f"added_{len(table.columns)}")
    elif action == "insert" and absent:
        table.insert(draw(st.sampled_from(absent)), draw(NAMES), draw(BODIES))
    elif action == "update" and present:
        table.update(draw(st.sampled_from(present)), draw(NAMES), draw(BODIES), body_is_unchanged=False)
    elif action == "update_name" and present:
        table.update(draw(st.sampled_from(present)), draw(NAMES), None, body_is_unchanged=True)
    elif action == "delete" and present:
        table.delete(draw(st.sampled_from(present)))
    elif action == "move" and present and absent:
        table.move(draw(st.sampled_from(present)), draw(st.sampled_from(absent)))


@st.composite
def deliveries(draw: st.DrawFn, events: list[SentEvent], most_batches: int = 4) -> Delivery:
    """The events in order, some streamed ones sent again after a crash of the sender, cut anywhere into
    batches."""
    streamed_from = next((n for n, event in enumerate(events) if not _is_snapshot(event)), len(events))
    numbers = list(range(streamed_from))
    for number in range(streamed_from, len(events)):
        numbers.append(number)
        if number > streamed_from and draw(st.integers(0, 9)) == 0:
            numbers.extend(range(draw(st.integers(streamed_from, number)), number + 1))
    cuts = draw(st.sets(st.integers(1, max(1, len(numbers) - 1)), max_size=most_batches - 1))
    borders = [0, *sorted(cut for cut in cuts if cut < len(numbers)), len(numbers)]
    return Delivery(tuple(numbers), tuple(pairwise(borders)))


def _is_snapshot(event: SentEvent) -> bool:
    return event.value is not None and b'"op":"r"' in event.value
