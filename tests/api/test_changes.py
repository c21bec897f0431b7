"""The changes between two states turn the one into the other."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tributary.api.changes import changes_between

Row = tuple[int, int, bool]
STATES = st.dictionaries(
    st.text("abcd", min_size=1, max_size=2), st.tuples(st.integers(1, 4), st.integers(0, 9), st.booleans())
)


def table(rows: Mapping[str, Row]) -> pa.Table:
    columns = {
        "_key": pa.array(list(rows), pa.string()),
        "_seq": pa.array([row[0] for row in rows.values()], pa.int64()),
        "_deleted": pa.array([row[2] for row in rows.values()], pa.bool_()),
        "value": pa.array([row[1] for row in rows.values()], pa.int64()),
    }
    return pa.table(columns)


def by_key(rows: pa.Table) -> dict[str, tuple[int, int]]:
    return {row["_key"]: (row["_seq"], row["value"]) for row in rows.to_pylist()}


@given(STATES, STATES)
def test_the_changes_turn_the_earlier_rows_into_the_later_ones(
    before: dict[str, Row], after: dict[str, Row]
) -> None:
    # A row with the same _seq has the same values, because no event came in between.
    after = {key: before[key] if before.get(key, (0,))[0] == row[0] else row for key, row in after.items()}
    was, now = ({key: row[:2] for key, row in state.items() if not row[2]} for state in (before, after))
    found = changes_between("1", table(before), "2", table(after))
    inserted, updated, deleted = map(by_key, (found.inserted, found.updated, found.deleted))
    assert {key: row for key, row in was.items() if key not in deleted} | updated | inserted == now
    assert inserted == {key: row for key, row in now.items() if key not in was}
    assert deleted == {key: row for key, row in was.items() if key not in now}
    assert all(was[key] != row for key, row in updated.items())


def test_a_table_that_keeps_no_deleted_rows_has_changes_too() -> None:
    before, after = (
        table(state).drop(["_deleted"]) for state in ({"a": (1, 1, False)}, {"a": (2, 1, False)})
    )
    found = changes_between("1", before, "2", after)
    assert by_key(found.updated) == {"a": (2, 1)}
