"""One round of a table's verification: which parts to look at, and what the looks tell."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from connectors.engines.checksums import Checksum, KeyValues, Part
from connectors.engines.engine import RowsUnreadable
from tributary.contract.table_name import TableName
from tributary.operations.reconcile.barrier import LakeBehind
from tributary.operations.reconcile.comparison import Difference as RowDifference
from tributary.operations.reconcile.comparison import Kind, compare
from tributary.operations.reconcile.pairing import Pairing
from tributary.operations.verify.database_side import DatabaseSide
from tributary.operations.verify.judgment import Difference, Key, judge, versions_of
from tributary.operations.verify.lake_side import NO_ROWS, Fingerprint, LakeSide, PartRows, fingerprint_text
from tributary.operations.verify.record import CheckedPart, FoundRow, Verification

ROWS_IN_A_PART = 10_000
"""How many rows a part of a table has, unless the table would have too many parts."""

MOST_PARTS = 2_000
SHARE_OF_THE_OTHERS = 0.25
"""The share of a round that goes to parts whose lake rows did not change since they were found equal."""

MOST_FOUND = 20
"""How many differing rows of a part the record describes."""

_LOOKS = 4
_KINDS = {Kind.MISSING: "missing", Kind.EXTRA: "extra", Kind.REPEATED: "repeated", Kind.CHANGED: "changed"}


@dataclass(frozen=True)
class Sides:
    """A table in the database and in the lake.

    order          the key columns that both sides sort alike; empty if there are none
    wait_for_lake  returns when the lake has all that the database had at the call. Raises LakeBehind.
    now            the time in microseconds since 1970
    """

    name: TableName
    pairing: Pairing
    order: tuple[str, ...]
    database: DatabaseSide
    lake: LakeSide
    wait_for_lake: Callable[[], None]
    now: Callable[[], int] = field(default=lambda: time.time_ns() // 1000)


def verify_table(sides: Sides, known: Verification | None, rows: int | None) -> Verification:
    """Return what is known of the table after one more round, which looks at about this many rows.

    None: at all rows. If the database does not let its rows be read in time, or the lake does not catch up,
    the result says so, and has what the round found before.
    """
    state = sides.lake.rows.state()
    found = _with_parts(sides, known)
    prints = _fingerprints(sides, found, state)
    found, prints = _split(sides, found, prints)
    found = replace(
        found,
        state=state,
        looked_us=sides.now(),
        problem=None,
        uncompared=sides.pairing.uncompared,
        parts=tuple(
            # A part whose lake rows have changed has to be checked again.
            replace(part, rows=one.rows, fingerprint=one.text if one.text == part.fingerprint else None)
            for part, one in zip(found.parts, prints, strict=True)
        ),
    )
    chosen = choose(found.parts, rows)
    found = replace(found, checked_rows=sum(found.parts[place].rows for place in chosen))
    try:
        for parts in _in_portions(chosen, found.parts):
            found = _look_at(sides, found, parts)
    except RowsUnreadable as error:
        return replace(found, problem=f"the database did not let its rows be read: {error}")
    except LakeBehind as error:
        return replace(found, problem=f"rows differ, but the lake is behind its source: {error.found}")
    return found


def choose(parts: Sequence[CheckedPart], rows: int | None) -> list[int]:
    """Return the places of the parts that a round of this many rows looks at, in order.

    First come parts with differences, then those whose lake rows changed. A share of the round is left to the
    others. Of each kind, those that were found equal longest ago come first.
    """
    if rows is None:
        return list(range(len(parts)))
    ages = {place: part.equal_us or 0 for place, part in enumerate(parts)}
    by_age = sorted(ages, key=lambda place: (not parts[place].differences, ages[place]))
    changed = [p for p in by_age if parts[p].differences or parts[p].fingerprint is None]
    unchanged = set(by_age).difference(changed)
    others = [place for place in by_age if place in unchanged]
    for_others = min(rows * SHARE_OF_THE_OTHERS, sum(parts[place].rows for place in others))
    chosen = _first(changed, parts, rows - for_others)
    left = rows - sum(parts[place].rows for place in chosen)
    return sorted([*chosen, *_first(others, parts, max(left, for_others))])


def _first(places: Sequence[int], parts: Sequence[CheckedPart], rows: float) -> list[int]:
    """Return the first places until their parts have that many rows, at least one."""
    found: list[int] = []
    for place in places:
        if rows <= 0:
            break
        found.append(place)
        rows -= max(1, parts[place].rows)
    return found


def _in_portions(places: Sequence[int], parts: Sequence[CheckedPart]) -> list[list[int]]:
    """Return the places in lists whose rows fit in memory."""
    portions: list[list[int]] = [[]]
    rows = 0
    for place in places:
        if rows + parts[place].rows > 1_000_000 and portions[-1]:
            portions.append([])
            rows = 0
        portions[-1].append(place)
        rows += parts[place].rows
    return [portion for portion in portions if portion]


def _with_parts(sides: Sides, known: Verification | None) -> Verification:
    """Return what is known, with parts. A table with another key, or much larger, begins again."""
    pairing = sides.pairing
    columns = _identity(pairing)
    if known is not None and _fits(known, sides):
        if known.columns == columns:
            return known
        # What was equal was equal; but each part has to be looked at again.
        parts = tuple(replace(part, fingerprint=None) for part in known.parts)
        return replace(known, columns=columns, parts=parts, state=None)
    empty = Verification(sides.name, pairing.key, sides.order, columns)
    rows = sides.lake.count()
    if not sides.order:
        number = max(1, min(MOST_PARTS, -(-rows // ROWS_IN_A_PART)))
        return replace(empty, parts=(CheckedPart(),) * number)
    ends = sides.lake.ends(sides.order, max(ROWS_IN_A_PART, rows // MOST_PARTS))
    return replace(empty, parts=tuple(CheckedPart(end) for end in (*ends, None)))


def _fits(known: Verification, sides: Sides) -> bool:
    if not known.parts or (known.key, known.order) != (sides.pairing.key, sides.order):
        return False
    is_small = known.rows <= 4 * ROWS_IN_A_PART * len(known.parts) or len(known.parts) == MOST_PARTS
    return bool(sides.order) or is_small


def _identity(pairing: Pairing) -> str:
    found = [(name, form.name) for name, form in pairing.forms.items()]
    return hashlib.sha256(json.dumps([found, sorted(pairing.unheard)]).encode()).hexdigest()[:16]


def _fingerprints(sides: Sides, found: Verification, state: str) -> list[Fingerprint]:
    if found.state == state and all(part.fingerprint is not None for part in found.parts):
        # Nothing was committed since the last look, which found each part equal.
        return [Fingerprint(part.rows, part.fingerprint or "") for part in found.parts]
    return sides.lake.fingerprints(found.places())


def _split(
    sides: Sides, found: Verification, prints: list[Fingerprint]
) -> tuple[Verification, list[Fingerprint]]:
    """Split the ranges that have grown to more than twice their size."""
    if not found.order:
        return found, prints
    total = sum(one.rows for one in prints)
    size = max(ROWS_IN_A_PART, total // MOST_PARTS)
    grown = [place for place, one in enumerate(prints) if one.rows > 2 * size]
    if not grown:
        return found, prints
    places, parts = found.places(), []
    for place, part in enumerate(found.parts):
        ends: list[KeyValues | None] = (
            [*sides.lake.ends(found.order, size, places, place)] if place in set(grown) else []
        )
        ends = [end for end in ends if end != part.upto]
        if not ends:
            parts.append(part)
            continue
        # The whole was equal, and so was each of its pieces.
        piece = replace(part, fingerprint=None, differences=0, in_flight=0, found=())
        parts += [replace(piece, upto=end) for end in ends]
        parts.append(replace(part, fingerprint=None))
    found = replace(found, parts=tuple(parts))
    return found, sides.lake.fingerprints(found.places())


def _look_at(sides: Sides, found: Verification, wanted: Sequence[int]) -> Verification:
    """Compare the parts at these places: first their checksums, then the rows of those that differ."""
    places = found.places()
    before = sides.lake.rows_of(places, wanted)
    try:
        of_lake, prints = before.checksums(), before.fingerprints()
        different: list[int] = []
        for place, equal_us, is_equal in _compared(sides, found, wanted, of_lake):
            if not is_equal:
                different.append(place)
                continue
            part = found.parts[place]
            one = prints.get(place, NO_ROWS)
            equal = CheckedPart(part.upto, one.rows, equal_us, one.text)
            found = found.with_part(place, equal)
        if different:
            rows_before = before.table()
            found = _recheck(sides, found, different, rows_before)
        return found
    finally:
        before.close()


def _compared(
    sides: Sides, found: Verification, wanted: Sequence[int], of_lake: Mapping[int, Checksum]
) -> list[tuple[int, int, bool]]:
    """Return each part's place, the time of the database's state, and whether its checksum is the lake's."""
    places = found.places()
    nothing = Checksum(0, 0, 0)
    if not found.order:
        at = sides.now()
        sums = sides.database.checksums([places[place] for place in wanted])
        return [
            (place, at, one == of_lake.get(place, nothing)) for place, one in zip(wanted, sums, strict=True)
        ]
    compared = []
    for place in wanted:
        at = sides.now()
        (one,) = sides.database.checksums([places[place]])
        compared.append((place, at, one == of_lake.get(place, nothing)))
    return compared


def _recheck(sides: Sides, found: Verification, wanted: Sequence[int], before: pa.Table) -> Verification:
    """Compare the rows of the parts at these places, until each difference was seen at two looks.

    The second look is needed because a change can be on its way to the lake, for a moment, before the
    database's other sessions see it.
    """
    places, key = found.places(), sides.pairing.key
    seen: dict[int, Mapping[Key, Difference]] = {}
    still = list(wanted)
    for look in range(1, _LOOKS + 1):
        began, database = {}, {}
        for place in still:
            began[place] = sides.now()
            database[place] = sides.database.rows(places[place])
        sides.wait_for_lake()
        after = _rows_of(sides.lake, places, still)
        unsettled: list[int] = []
        for place in still:
            judgment = judge(_of(before, place), database[place], _of(after, place), key)
            if judgment.missing:
                versions = versions_of(sides.database.rows(places[place]), key)
                judgment = judgment.with_versions(versions)
            confirmed = {k: one for k, one in judgment.wrong.items() if seen.get(place, {}).get(k) == one}
            unconfirmed = len(judgment.wrong) - len(confirmed)
            is_last = look == _LOOKS
            if not is_last and (unconfirmed or (judgment.in_flight and not confirmed)):
                seen[place] = judgment.wrong
                unsettled.append(place)
                continue
            found = found.with_part(
                place,
                _judged(
                    sides,
                    found,
                    place,
                    confirmed,
                    judgment.in_flight + unconfirmed,
                    began[place],
                    _of(after, place) if judgment.settled else None,
                ),
            )
        before, still = after, unsettled
        if not still:
            break
    return found


def _judged(
    sides: Sides,
    found: Verification,
    place: int,
    wrong: Mapping[Key, Difference],
    in_flight: int,
    at: int,
    settled: pa.Table | None,
) -> CheckedPart:
    part = found.parts[place]
    if wrong:
        described = _described(sides, found, place, wrong)
        return replace(part, differences=len(wrong), in_flight=in_flight, found=described, fingerprint=None)
    text = _fingerprint(settled) if settled is not None and not in_flight else None
    return CheckedPart(part.upto, part.rows, at, text, in_flight=in_flight)


def _described(
    sides: Sides, found: Verification, place: int, wrong: Mapping[Key, Difference]
) -> tuple[FoundRow, ...]:
    """Return some of the rows that differ, with their values."""
    pairing, part = sides.pairing, found.places()[place]
    keys = dict(list(wrong.items())[:MOST_FOUND])
    database = _with_keys(sides.database.full_rows(part), keys, pairing)
    lake = _with_keys(sides.lake.full_rows(found.places(), [place]), keys, pairing)
    comparison = compare(database.to_batches(), lake.to_batches(), pairing.schema, pairing.key)
    described = {tuple(one.key): one for one in comparison.differences}
    # A row that has changed since the looks is not described with other values than they found.
    return tuple(
        _found_row(described[key], pairing)
        if key in described
        else FoundRow(_shown_key(key, pairing), difference.kind, {})
        for key, difference in keys.items()
    )


def _found_row(one: RowDifference, pairing: Pairing) -> FoundRow:
    cells = {
        cell.column: (
            pairing.forms[cell.column].show(cell.database),
            pairing.forms[cell.column].show(cell.lake),
        )
        for cell in one.cells
    }
    return FoundRow(_shown_key(one.key, pairing), _KINDS[one.kind], cells)


def _shown_key(key: Key, pairing: Pairing) -> dict[str, str]:
    return {name: pairing.forms[name].show(value) for name, value in zip(pairing.key, key, strict=True)}


def _with_keys(rows: pa.Table, keys: Collection[Key], pairing: Pairing) -> pa.Table:
    columns = [rows.column(name).to_pylist() for name in pairing.key]
    return rows.filter(pa.array([key in keys for key in zip(*columns, strict=True)], pa.bool_()))


def _rows_of(lake: LakeSide, places: Sequence[Part], wanted: Sequence[int]) -> pa.Table:
    rows: PartRows = lake.rows_of(places, wanted)
    try:
        return rows.table()
    finally:
        rows.close()


def _of(rows: pa.Table, place: int) -> pa.Table:
    return rows.filter(pc.field("place") == place)


def _fingerprint(rows: pa.Table) -> str:
    """Return the fingerprint of a part's lake rows, as `LakeSide.fingerprints` does."""
    with duckdb.connect() as engine:
        engine.register("rows", rows)
        found = engine.execute("SELECT count(*), sum(hash(sequence)) FROM rows").fetchone()
    assert found is not None, "an aggregate has one row"
    return fingerprint_text(*found)
