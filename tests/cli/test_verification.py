"""Verification finds exactly the rows that differ, also while changes are on their way to the lake."""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql

from connectors.engines.postgres.engine import PostgresEngine
from tests.soak import SOAKS
from tributary.contract.lake import TablePolicy
from tributary.contract.table_name import TableName
from tributary.local.postgres import PostgresServer, connect_as_admin, create_database
from tributary.operations.reconcile.hidden import Hiding
from tributary.operations.reconcile.pairing import pair
from tributary.operations.verify import check
from tributary.operations.verify.check import SHARE_OF_THE_OTHERS, Sides, choose, verify_table
from tributary.operations.verify.database_side import FromRows, InDatabase, Load
from tributary.operations.verify.lake_side import LakeSide
from tributary.operations.verify.record import CheckedPart, FoundRow, Verification, from_json, to_json
from tributary.operations.verify.view import (
    SNAPSHOT,
    SNAPSHOT_ON_AWS,
    cause_of,
    sentence,
    verification_facts,
    verified_text,
)

NAME = TableName("shop", "public", "things")
ENGINE = PostgresEngine()

Row = dict[str, Any]

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1))


@dataclass(frozen=True)
class Column:
    """A column: its type in PostgreSQL and in the lake, and its values as both take them."""

    sql: str
    arrow: pa.DataType
    values: st.SearchStrategy[Any]
    in_lake: Callable[[Any], Any] = lambda value: value


def float_4(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


COLUMNS: dict[str, Column] = {
    "flag": Column("boolean", pa.bool_(), st.booleans()),
    "small": Column("smallint", pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "big": Column("bigint", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": Column("float8", pa.float64(), st.floats()),
    "real": Column("real", pa.float32(), st.floats(width=32), float_4),
    "price": Column(
        "numeric(12,3)", pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3, allow_nan=False)
    ),
    "words": Column("text", pa.string(), TEXTS),
    "blob": Column("bytea", pa.binary(), st.binary(max_size=5)),
    "day": Column("date", pa.date32(), st.dates()),
    "moment": Column("timestamp", pa.timestamp("us"), MOMENTS),
    "zoned": Column(
        "timestamptz",
        pa.timestamp("us", "UTC"),
        MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    ),
    "token": Column("uuid", pa.string(), st.uuids(), str),
    "ints": Column("int[]", pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "texts": Column("text[]", pa.list_(pa.string()), st.lists(st.none() | TEXTS, max_size=3)),
    "doubles": Column("float8[]", pa.list_(pa.float64()), st.lists(st.none() | st.floats(), max_size=2)),
    "secret": Column("text", pa.string(), TEXTS, lambda _: "*****"),
    "unseen": Column("text", pa.string(), TEXTS),
}
POLICY = TablePolicy(mask=("secret",), leave_out=("unseen",), rows="small IS DISTINCT FROM 7")


@dataclass
class FakeLake:
    """A table of the lake in memory. Each row has the `_seq` of its event."""

    columns: dict[str, Column]
    key: dict[str, Column]
    rows: dict[Any, tuple[int, Row]] = field(default_factory=dict)
    repeated: list[tuple[int, Row]] = field(default_factory=list)
    sequence: int = 0

    @property
    def schema(self) -> pa.Schema:
        seen = {name: one for name, one in self.columns.items() if name != "unseen"}
        fields = [(name, one.arrow) for name, one in (self.key | seen).items()]
        return pa.schema([*fields, ("_seq", pa.int64()), ("_deleted", pa.bool_())])

    def put(self, key: Any, row: Row, *, is_deleted: bool = False) -> None:
        self.sequence += 1
        self.rows[key] = (self.sequence, {**row, "_deleted": is_deleted})

    def state(self) -> str:
        return str(self.sequence)

    def read(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        found = [{**row, "_seq": number} for number, row in (*self.rows.values(), *self.repeated)]
        known = self.key | self.columns
        arrays = []
        for name in columns:
            in_lake = known[name].in_lake if name in known else lambda value: value
            values = [None if row[name] is None and name != "secret" else in_lake(row[name]) for row in found]
            arrays.append(pa.array(values, self.schema.field(name).type))
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_arrays(arrays, schema=schema).to_reader(max_chunksize=3)


@pytest.fixture(scope="module")
def shop(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    name = "verification"
    with connect_as_admin(postgres_server) as admin:
        create_database(admin, name)
        with connect_as_admin(postgres_server, name) as connection:
            connection.prepare_threshold = None  # Each example has another table of the same name.
            yield connection
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "ROWS_IN_A_PART", 3)


KEYS: dict[str, tuple[dict[str, Column], st.SearchStrategy[Any]]] = {
    "ranges of numbers": (
        {"id": Column("int", pa.int32(), st.nothing())},
        st.tuples(st.integers(-50, 50)),
    ),
    "ranges of two columns": (
        {
            "tenant": Column("uuid", pa.string(), st.nothing(), str),
            "name": Column('text COLLATE "C"', pa.string(), st.nothing()),
        },
        st.tuples(st.sampled_from([UUID(int=1), UUID(int=2**127)]), st.text("aAé😀'", max_size=2)),
    ),
    "buckets": (
        {"id": Column("text", pa.string(), st.nothing()), "part": Column("int", pa.int32(), st.nothing())},
        st.tuples(st.text("aAé😀'", max_size=2), st.integers(0, 3)),
    ),
}
"""Primary keys, by what the parts of their tables are."""


@dataclass
class World:
    """A table in PostgreSQL and in the lake, and changes that are on their way while they are compared.

    busy       how often somebody still changes rows
    untouched  the keys that nobody changes
    """

    shop: psycopg.Connection
    key: dict[str, Column]
    lake: FakeLake
    values: st.DataObject
    on_its_way: list[tuple[Any, Row | None]] = field(default_factory=list)
    busy: int = 0
    untouched: frozenset[Any] = frozenset()
    kind: str = ""

    def write(self, key: Any, row: Row | None) -> None:
        """Change a row in the database. None deletes it."""
        names = sql.SQL(", ").join(map(sql.Identifier, self.key))
        self.shop.execute(
            sql.SQL("DELETE FROM things WHERE ({}) = ({})").format(
                names,
                sql.SQL(", ").join(
                    sql.SQL("{}::{}").format(value, sql.SQL(one.sql.partition(" ")[0]))
                    for value, one in zip(map(sql.Literal, key), self.key.values(), strict=True)
                ),
            )
        )
        if row is not None:
            insert(self.shop, row)

    def arrive(self, key: Any, row: Row | None) -> None:
        """Apply an event to the lake, which takes only the rows of the filter."""
        if row is not None and row["small"] != 7:
            self.lake.put(key, row)
        elif key in self.lake.rows:
            if self.values.draw(st.booleans()):
                del self.lake.rows[key]
            else:
                self.lake.put(key, self.lake.rows[key][1], is_deleted=True)
            self.lake.sequence += 1

    def change(self) -> None:
        """Change some rows of the database. Some of the changes reach the lake at once, others later."""
        if self.busy <= 0:
            return
        self.busy -= 1
        for key in self.values.draw(st.lists(KEYS[self.kind][1], max_size=3)):
            if key in self.untouched:
                continue
            row = self.values.draw(st.none() | rows(self.key, key))
            self.write(key, row)
            self.on_its_way.append((key, row))
        self.let_arrive(self.values.draw(st.integers(0, len(self.on_its_way))))

    def let_arrive(self, number: int) -> None:
        for key, row in self.on_its_way[:number]:
            self.arrive(key, row)
        del self.on_its_way[:number]

    def wait_for_lake(self) -> None:
        self.let_arrive(len(self.on_its_way))
        self.change()


def insert(shop: psycopg.Connection, row: Row) -> None:
    shop.execute(
        sql.SQL("INSERT INTO things ({}) VALUES ({})").format(
            sql.SQL(", ").join(map(sql.Identifier, row)), sql.SQL(", ").join([sql.Placeholder()] * len(row))
        ),
        list(row.values()),
    )


def rows(key_columns: dict[str, Column], key: Any) -> st.SearchStrategy[Row]:
    values = {name: st.none() | column.values for name, column in COLUMNS.items()}
    return st.fixed_dictionaries(values).map(lambda row: dict(zip(key_columns, key, strict=True)) | row)


class Busy:
    """The database's side, with changes before and after each look."""

    def __init__(self, side: InDatabase | FromRows, world: World) -> None:
        self.side, self.world = side, world

    def __getattr__(self, name: str) -> Any:
        look = getattr(self.side, name)

        def call(*arguments: Any) -> Any:
            self.world.change()
            found = look(*arguments)
            self.world.change()
            return found

        return call


def sides_of(world: World, policy: TablePolicy, in_database: bool = True) -> Sides:
    (table,) = [one for one in ENGINE.read_tables(world.shop) if one.name == NAME.table]
    hiding = Hiding(policy, table, world.lake.schema, salt=b"salt")
    pairing = pair(hiding.sent, world.lake.schema, table.primary_key, hiding.left_out)
    assert not pairing.mismatched
    side = (InDatabase if in_database else FromRows)(
        ENGINE, ENGINE.parts, world.shop, hiding, pairing, Load(share=1.0, statement_seconds=30)
    )
    order = ENGINE.parts.sorted_columns(world.shop, table, table.primary_key)
    lake = LakeSide(world.lake, pairing)
    return Sides(NAME, pairing, order, Busy(side, world), lake, world.wait_for_lake)


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=60 if SOAKS else 4)
@given(data=st.data())
def test_exactly_the_rows_that_differ_are_found_whatever_is_on_its_way(
    shop: psycopg.Connection, kind: str, data: st.DataObject
) -> None:
    key_columns, keys = KEYS[kind]
    create(shop, key_columns)
    world = World(shop, key_columns, FakeLake(COLUMNS, key_columns), data, kind=kind)
    present = data.draw(st.lists(keys, unique=True, max_size=12))
    for key in present:
        row = data.draw(rows(key_columns, key))
        insert(shop, row)
        world.arrive(key, row)
    planted = plant(world, data, present)
    world.untouched = frozenset(planted)
    in_database = data.draw(st.booleans())

    world.busy = 12
    first = verify_table(sides_of(world, POLICY, in_database), None, rows=None)
    assert kinds_of(first, key_columns) == planted
    assert first.problem is None

    world.busy = 0
    world.let_arrive(len(world.on_its_way))
    second = verify_table(sides_of(world, POLICY, in_database), from_json(to_json(first)), rows=None)
    assert kinds_of(second, key_columns) == planted
    assert second.in_flight == 0

    # The lake gets the right rows, as an online snapshot brings them.
    for key in planted:
        world.lake.repeated.clear()
        right = stored(shop, key_columns, key)
        if right is None:
            world.lake.rows.pop(key, None)
            world.lake.sequence += 1
        else:
            world.arrive(key, right)
    before = sides_of(world, POLICY).now()
    third = verify_table(sides_of(world, POLICY, in_database), second, rows=None)
    assert third.differences == third.in_flight == 0
    assert third.equal_us is not None
    assert third.equal_us >= before


def create(shop: psycopg.Connection, key: dict[str, Column]) -> None:
    columns = ", ".join(f"{name} {one.sql}" for name, one in (key | COLUMNS).items())
    shop.execute("DROP TABLE IF EXISTS things")
    shop.execute(f"CREATE TABLE things ({columns}, PRIMARY KEY ({', '.join(key)}))".encode())


def plant(world: World, data: st.DataObject, present: list[Any]) -> dict[Any, str]:
    """Let some rows of the lake differ, and return their keys with the kinds of differences."""
    planted: dict[Any, str] = {}
    for key in data.draw(st.lists(KEYS[world.kind][1], unique=True, max_size=4)):
        is_in_lake = key in world.lake.rows
        if is_in_lake:
            kind = data.draw(st.sampled_from(["missing", "changed", "repeated"]))
            number, row = world.lake.rows[key]
            if kind == "missing":
                del world.lake.rows[key]
            elif kind == "changed":
                name = data.draw(st.sampled_from(["words", "blob", "flag"]))
                other = {"words": "other words", "blob": b"other", "flag": not row["flag"]}[name]
                world.lake.rows[key] = (number, {**row, name: other})
            elif kind == "repeated":
                world.lake.repeated.append((number, row))
        elif key not in present:
            kind = "extra"
            row = {**data.draw(rows(world.key, key)), "small": 1}
            world.lake.put(key, row)
        else:
            continue  # The filter leaves the row out of the lake.
        planted[key] = kind
    return planted


def stored(shop: psycopg.Connection, key_columns: dict[str, Column], key: Any) -> Row | None:
    with shop.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        found = cursor.execute("SELECT * FROM things").fetchall()
    return next((row for row in found if tuple(row[name] for name in key_columns) == key), None)


def kinds_of(found: Verification, key_columns: dict[str, Column]) -> dict[Any, str]:
    """Return the kinds of the differences by key."""
    known = {}
    for one in found.found:
        key = []
        for name, column in key_columns.items():
            key.append(_parsed(one.key[name], column))
        known[tuple(key)] = one.kind
    assert len(known) == found.differences
    return known


def _parsed(text: str, column: Column) -> Any:
    value = ast.literal_eval(text)
    return UUID(value) if column.sql == "uuid" else value


PARTS = st.lists(
    st.builds(
        CheckedPart,
        rows=st.integers(0, 50),
        equal_us=st.none() | st.integers(1, 9),
        fingerprint=st.none() | st.just("same"),
        differences=st.integers(0, 1),
    ),
    min_size=1,
    max_size=30,
)


@given(PARTS, st.integers(60, 200), st.data())
def test_every_part_is_looked_at_and_no_round_is_much_larger_than_it_may_be(
    parts: list[CheckedPart], rows: int, data: st.DataObject
) -> None:
    unseen = set(range(len(parts)))
    for now in range(10, 10 + 2 * len(parts) + 60):
        chosen = choose(parts, rows)
        assert chosen == sorted(set(chosen))
        # Each of both kinds of parts may exceed its share by less than its last part.
        assert sum(parts[place].rows for place in chosen) <= rows + 100
        wrong = {place for place, part in enumerate(parts) if part.differences}
        if sum(parts[place].rows for place in wrong) < rows * (1 - SHARE_OF_THE_OTHERS):
            assert wrong <= set(chosen)
        for place in chosen:
            parts[place] = replace(parts[place], equal_us=now, fingerprint="same", differences=0)
        unseen -= set(chosen)
        if not unseen:
            return
        # Some rows of the lake change all the time.
        busy = data.draw(st.integers(0, len(parts) - 1))
        parts[busy] = replace(parts[busy], fingerprint=None)
    raise AssertionError(f"no round looks at the parts {unseen}")


def found(*rows: FoundRow, problem: str | None = None, equal_us: int | None = 1_000_000) -> Verification:
    part = CheckedPart(rows=9, equal_us=equal_us, differences=len(rows), found=rows)
    return Verification(NAME, parts=(part,), looked_us=2_000_000, problem=problem)


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ([FoundRow({"id": "1"}, "changed", {"a": ("1", "2")})], "Only the column a differs"),
        ([FoundRow({"id": "1"}, "missing", {})], "missing in the lake"),
        ([FoundRow({"id": "1"}, "extra", {})], "dropped or detached partition"),
        ([FoundRow({"id": "1"}, "repeated", {})], "rebuild the table"),
        ([FoundRow({"id": "1"}, "extra", {}), FoundRow({"id": "2"}, "missing", {})], "lost its position"),
    ],
)
def test_differences_come_with_their_likely_cause_and_the_command(rows: list[FoundRow], cause: str) -> None:
    one = replace(found(*rows), cause=cause_of(found(*rows), 0))
    assert cause in sentence(one)
    assert "To read it again, run tributary snapshot 'shop.public.things'" in sentence(one)
    assert verified_text(one) == f"{len(rows)} differ"


@pytest.mark.parametrize(
    ("quarantined", "cause"),
    [(1, "1 of its events is in quarantine"), (3, "Correct the rows in the database, or replay")],
)
def test_rows_that_may_differ_by_events_in_quarantine_are_not_to_be_read_again_first(
    quarantined: int, cause: str
) -> None:
    different = found(FoundRow({"id": "1"}, "changed", {"a": ("1", "2")}))
    one = replace(different, cause=cause_of(different, quarantined), quarantined=quarantined)
    assert cause in sentence(one)
    assert "see tributary quarantine list 'shop.public.things'." in sentence(one)
    assert "If it still differs after that, run tributary snapshot" in sentence(one)
    for snapshot, remedy in (
        (SNAPSHOT, "tributary quarantine list 'shop.public.things'"),
        (SNAPSHOT_ON_AWS, "tributary console --aws"),
    ):
        facts = verification_facts(one, snapshot)
        assert facts is not None
        assert facts["remedy"] == remedy
    assert from_json(to_json(one)) == one


def test_a_table_says_since_when_it_is_equal_or_why_it_is_not_verified() -> None:
    assert "equals its source as of 1970-01-01T00:00:01+00:00" in sentence(found())
    assert verified_text(found()) == "1970-01-01 00:00:01"
    paused = found(problem="it is paused")
    assert "not verified, because it is paused. It last equaled its source as of" in sentence(paused)
    left_out = found(equal_us=None, problem="it is left out: expected an ordinary table.")
    assert sentence(left_out).endswith("not verified, because it is left out: expected an ordinary table.")
    assert "0 % of 9 rows are verified so far" in sentence(found(equal_us=None))
    assert verified_text(None) == "-"


@pytest.mark.parametrize(("order", "is_used"), [((), False), (("id",), True)])
def test_a_record_whose_groups_were_told_by_another_hash_is_not_used(
    order: tuple[str, ...], is_used: bool
) -> None:
    found = Verification(TableName("shop", "public", "t"), ("id",), order, parts=(CheckedPart(),))
    of_md5 = to_json(found).replace('"format": 2', '"format": 1')

    assert from_json(to_json(found)) == found
    assert from_json(of_md5) == (found if is_used else None)
