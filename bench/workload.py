"""A steady stream of transactions on the benchmark's own tables, at a fixed rate.

The workload is its own process, `python -m bench.workload`, so its cost can be measured separately. It reads
its `Orders` as one line of JSON from standard input, works until the input closes, and prints its `Summary`.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

import psycopg
from psycopg import sql

Kind = Literal["update", "insert", "delete"]

SHARES: tuple[tuple[Kind, float], ...] = (("update", 0.5), ("insert", 0.3), ("delete", 0.2))
"""The share of each kind of change."""

SCHEMA = "public"
STATUSES = ("new", "paid", "packed", "sent", "returned")


@dataclass(frozen=True)
class Orders:
    """The instructions for the workload. Each table starts with the keys 1 to `rows`."""

    conninfo: str
    tables: tuple[str, ...]
    rows: int
    changes_per_second: float
    changes_per_transaction: int
    seed: int


@dataclass(frozen=True)
class Summary:
    """A summary of the work done.

    changes         number of changes by the second of their commit, since 1970
    latest_seconds  the longest delay of a transaction behind its due time
    """

    changes: dict[int, int]
    latest_seconds: float


@dataclass(frozen=True)
class Change:
    """A change of one row of a table."""

    kind: Kind
    table: str
    key: int


@dataclass
class _Rows:
    """The keys that are in a table now."""

    keys: list[int]
    next_key: int

    def new(self) -> int:
        key, self.next_key = self.next_key, self.next_key + 1
        self.keys.append(key)
        return key

    def any(self, chance: random.Random) -> int:
        return self.keys[chance.randrange(len(self.keys))]

    def remove_any(self, chance: random.Random) -> int:
        place = chance.randrange(len(self.keys))
        self.keys[place], self.keys[-1] = self.keys[-1], self.keys[place]
        return self.keys.pop()


def changes(tables: Sequence[str], rows: int, seed: int) -> Iterator[Change]:
    """Yield endless changes, each valid after the ones before it. All tables and keys are equally likely."""
    chance = random.Random(seed)
    held = {table: _Rows(list(range(1, rows + 1)), rows + 1) for table in tables}
    kinds, weights = zip(*SHARES, strict=True)
    while True:
        table = chance.choice(tables)
        kind = chance.choices(kinds, weights)[0]
        if kind == "insert" or not held[table].keys:
            yield Change("insert", table, held[table].new())
        elif kind == "update":
            yield Change("update", table, held[table].any(chance))
        else:
            yield Change("delete", table, held[table].remove_any(chance))


def create_table(connection: psycopg.Connection, table: str, rows: int) -> None:
    """Create a table with the keys 1 to `rows`."""
    name = sql.Identifier(SCHEMA, table)
    connection.execute(
        sql.SQL(
            """CREATE TABLE {} (
                id bigint PRIMARY KEY,
                customer integer NOT NULL,
                status text NOT NULL,
                amount numeric(12, 2) NOT NULL,
                note text,
                changed_at timestamptz NOT NULL
            )"""
        ).format(name)
    )
    connection.execute(
        sql.SQL(
            """INSERT INTO {}
            SELECT id, mod(id, 10007), 'new', mod(id, 100000) / 100.0, md5(id::text), now()
            FROM generate_series(1, %s::bigint) AS id"""
        ).format(name),
        [rows],
    )


@dataclass
class _Statements:
    """The SQL of a change, by kind and table."""

    chance: random.Random
    texts: dict[tuple[Kind, str], sql.Composed] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Sequence[str], seed: int) -> _Statements:
        forms: dict[Kind, str] = {
            "insert": "INSERT INTO {} (customer, status, amount, note, changed_at, id) "
            "VALUES (%s, %s, %s, %s, now(), %s)",
            "update": "UPDATE {} SET customer = %s, status = %s, amount = %s, note = %s, changed_at = now() "
            "WHERE id = %s",
            "delete": "DELETE FROM {} WHERE id = %s",
        }
        texts = {
            (kind, table): sql.SQL(form).format(sql.Identifier(SCHEMA, table))
            for kind, form in forms.items()
            for table in tables
        }
        return cls(random.Random(f"{seed} values"), texts)

    def apply(self, cursor: psycopg.Cursor, change: Change) -> None:
        values: tuple[object, ...] = ()
        if change.kind != "delete":
            cents = self.chance.randrange(10_000_000)
            note = f"{self.chance.getrandbits(128):032x}"
            values = (self.chance.randrange(10_007), self.chance.choice(STATUSES), cents / 100, note)
        cursor.execute(self.texts[change.kind, change.table], (*values, change.key), prepare=True)


def work(orders: Orders, stop: threading.Event) -> Summary:
    """Commit transactions until `stop` is set. None is skipped: after a late one, the next come sooner."""
    statements = _Statements.of(orders.tables, orders.seed)
    stream = changes(orders.tables, orders.rows, orders.seed)
    done: Counter[int] = Counter()
    latest = 0.0
    interval = orders.changes_per_transaction / orders.changes_per_second
    with psycopg.connect(orders.conninfo, autocommit=True) as connection, connection.cursor() as cursor:
        due = time.monotonic()
        while not stop.wait(max(0.0, due - time.monotonic())):
            latest = max(latest, time.monotonic() - due)
            with connection.pipeline(), connection.transaction():
                for _ in range(orders.changes_per_transaction):
                    statements.apply(cursor, next(stream))
            done[int(time.time())] += orders.changes_per_transaction
            due += interval
    return Summary(dict(done), latest)


def until_closed(stop: threading.Event) -> None:
    """Start a thread that sets the event when standard input closes."""

    def wait() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait, name="standard input", daemon=True).start()


def main() -> None:
    """Read the orders from standard input and run the workload."""
    found = json.loads(sys.stdin.readline())
    stop = threading.Event()
    until_closed(stop)
    summary = work(Orders(**{**found, "tables": tuple(found["tables"])}), stop)
    print(json.dumps(asdict(summary)), flush=True)


if __name__ == "__main__":
    main()
