"""Changes that are still on their way are not reported as differences, and every wrong row is."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tributary.operations.reconcile.comparison import Cell, Comparison, Difference, Kind
from tributary.operations.reconcile.rounds import MAX_ROUNDS, Findings

Rows = Mapping[int, int]
KEYS = st.integers(0, 5)
ROWS = st.dictionaries(KEYS, st.integers(0, 9))


def _compared(database: Rows, lake: Rows) -> Comparison:
    differences = []
    for key in sorted(database.keys() | lake.keys()):
        if key not in lake:
            differences.append(Difference((key,), Kind.MISSING))
        elif key not in database:
            differences.append(Difference((key,), Kind.EXTRA))
        elif database[key] != lake[key]:
            differences.append(Difference((key,), Kind.CHANGED, (Cell("n", database[key], lake[key]),)))
    return Comparison(len(database), tuple(differences))


def _written(rows: Rows, keys: set[int], moment: int) -> Rows:
    """Return the rows after a write to each of the keys: a value that is new to the row, or a delete."""
    after = {**rows, **{key: 100 + moment * 10 + key for key in keys if (key + moment) % 3}}
    return {key: value for key, value in after.items() if key not in keys or (key + moment) % 3}


@given(ROWS, st.lists(st.sets(KEYS), max_size=MAX_ROUNDS - 1))
def test_a_row_that_is_no_longer_written_is_found_equal(rows: Rows, writes: list[set[int]]) -> None:
    findings = Findings()
    for moment, keys in enumerate([*writes, set()]):
        if not findings.is_open:
            break
        later = _written(rows, keys, moment)
        findings = findings.after(_compared(rows, later))
        rows = later
    assert (findings.differences, findings.unsettled) == ((), ())


@given(ROWS, st.lists(st.sets(KEYS), min_size=MAX_ROUNDS, max_size=MAX_ROUNDS), KEYS, st.integers(10, 19))
def test_a_wrong_row_at_rest_is_certain_even_while_others_change(
    rows: Rows, writes: list[set[int]], wrong: int, value: int
) -> None:
    findings = Findings()
    for moment, keys in enumerate(writes):
        if not findings.is_open:
            break
        later = _written(rows, keys - {wrong}, moment)
        findings = findings.after(_compared(rows, {**later, wrong: value}))
        rows = later
    assert [difference.key for difference in findings.differences] == [(wrong,)]


def test_a_row_that_never_rests_is_named_as_unsettled() -> None:
    findings, rows = Findings(), {1: 0, 2: 0}
    for value in range(1, MAX_ROUNDS + 1):
        assert findings.is_open
        findings = findings.after(_compared(rows, {1: value, 2: 0}))
        rows = {1: value, 2: 0}
    assert not findings.is_open
    assert findings.differences == ()
    assert [difference.key for difference in findings.unsettled] == [(1,)]


def test_one_round_without_a_difference_is_enough() -> None:
    findings = Findings().after(Comparison(7, ()))
    assert not findings.is_open
    assert findings.rows == 7
