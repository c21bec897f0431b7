"""Cost of a round of verification of a large table, in PostgreSQL, on the lake and here."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import psycopg

from bench.driver import driver
from bench.orders import KEY, START
from bench.orders_table import OrdersTable, build_orders_table
from bench.results import Figure, Results, WrongResult
from bench.servers import Storage, storage
from connectors.engines.postgres.engine import PostgresEngine
from spark_app.hudi.hudi_table import HudiTable
from tributary.api.lake_files import LocalFiles
from tributary.api.tables import LakeTable
from tributary.contract.lake import TablePolicy, parse_lake
from tributary.contract.table_name import TableName
from tributary.contract.verify import Verify
from tributary.local import postgres
from tributary.local.process import read_process
from tributary.operations.reconcile.hidden import Hiding
from tributary.operations.reconcile.pairing import pair
from tributary.operations.verify.check import Sides, verify_table
from tributary.operations.verify.database_side import InDatabase, Load
from tributary.operations.verify.hudi_rows import HudiRows
from tributary.operations.verify.lake_side import LakeSide
from tributary.operations.verify.record import Verification

LAKE = parse_lake(
    """
    [lake]
    name = "verify"

    [source.shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*"]

    [local]
    spark_memory = "4g"
    """
)
NAME = TableName("shop", "public", "orders")


@dataclass(frozen=True)
class Settings:
    """The settings: a table of `orders` rows in `buckets`, and `rounds` of each kind, with default rules.

    changes  before each round of the second kind: records that change orders of all ages
    """

    orders: int = 10_000_000
    buckets: int = 8
    rounds: int = 5
    changes: int = 1_000


FULL = Settings()
QUICK = Settings(orders=200_000, buckets=2, rounds=2, changes=100)


@dataclass(frozen=True)
class _Cost:
    """What a round cost, in seconds. `database` is the CPU time of PostgreSQL."""

    seconds: float
    database: float
    here: float
    found: Verification


def run(settings: Settings = FULL) -> Results:
    with (
        tempfile.TemporaryDirectory(prefix="tributary-bench-") as folder,
        storage(LAKE, Path(folder) / "state") as storing,
    ):
        place = f"{LAKE.names.silver_bucket}/{LAKE.names.table_path(NAME)}"
        with (
            driver(LAKE, storing.state, storing.settings) as running,
            _database(storing) as (shop, database),
        ):
            policy = TablePolicy(buckets=settings.buckets)
            hudi = HudiTable(running.spark, f"s3a://{place}", "orders", policy)
            table = build_orders_table(running.spark, f"s3a://{place}_more", hudi, settings.orders)
            _fill(shop, settings.orders)
            rounds = _Rounds(shop, database, storing, place)
            costs = {"the first": [rounds.cost(Verify().rows)]}
            costs["nothing changed"] = [rounds.cost(Verify().rows) for _ in range(settings.rounds)]
            costs["rows changed"] = [
                rounds.cost(Verify().rows, before=lambda: _change(table, shop, settings.changes))
                for _ in range(settings.rounds)
            ]
    return Results("verify", asdict(settings), tuple(_figures(costs)))


def _figures(costs: dict[str, list[_Cost]]) -> Iterator[Figure]:
    for kind, found in costs.items():
        of = {"round": kind}
        yield Figure("seconds p50", round(statistics.median(one.seconds for one in found), 2), "s", of)
        yield Figure(
            "PostgreSQL CPU p50", round(statistics.median(one.database for one in found), 2), "s", of
        )
        yield Figure("own CPU p50", round(statistics.median(one.here for one in found), 2), "s", of)
        yield Figure(
            "rows compared p50", statistics.median(one.found.checked_rows for one in found), "rows", of
        )
    memory = psutil.Process().memory_info().rss / 1_000_000
    yield Figure("resident memory", round(memory), "MB", {"round": "the last"})


class _Rounds:
    """Rounds over the table, one after the other."""

    def __init__(
        self, shop: psycopg.Connection, database: psutil.Process, storing: Storage, place: str
    ) -> None:
        secrets = storing.settings.secrets
        files = LocalFiles(
            storing.settings.s3_endpoint,
            secrets.s3_access_key.get_secret_value(),
            secrets.s3_secret_key.get_secret_value(),
        )
        self.shop, self.database = shop, database
        self.files, self.place = files, LakeTable(NAME, place)
        self.known: Verification | None = None

    def cost(self, rows: int | None, before: Callable[[], None] = lambda: None) -> _Cost:
        """Do a round, and return its cost. Raise `WrongResult` if it finds a difference."""
        before()
        engine = PostgresEngine()
        (table,) = engine.read_tables(self.shop)
        lake = HudiRows(self.files, self.place)
        hiding = Hiding(TablePolicy(), table, lake.schema, None)
        pairing = pair(hiding.sent, lake.schema, (KEY,))
        load = Load(share=1.0, statement_seconds=Verify().statement_seconds)
        side = InDatabase(engine, engine.parts, self.shop, hiding, pairing, load)
        sides = Sides(NAME, pairing, (KEY,), side, LakeSide(lake, pairing), wait_for_lake=lambda: None)
        began, of_database, here = time.perf_counter(), _cpu(self.database), _own_cpu()
        self.known = found = verify_table(sides, self.known, rows)
        seconds = time.perf_counter() - began
        if found.differences or found.problem or not found.rows_proven:
            raise WrongResult("the verification found differences", found=str(found.found or found.problem))
        return _Cost(seconds, _cpu(self.database) - of_database, _own_cpu() - here, found)


@contextmanager
def _database(storing: Storage) -> Iterator[tuple[psycopg.Connection, psutil.Process]]:
    server = storing.servers.postgres
    try:
        server.start(threading.Event())
        with postgres.connect_as_admin(server) as admin:
            postgres.create_database(admin, "shop")
        record = read_process(postgres.SERVICE, storing.state.run)
        assert record is not None, "the server has just started"
        with postgres.connect_as_admin(server, "shop") as shop:
            yield shop, psutil.Process(record.pid)
    finally:
        server.stop(storing.state.run)


def _fill(shop: psycopg.Connection, orders: int) -> None:
    """Insert the rows of `bench.orders.first_row`."""
    shop.execute(
        "CREATE TABLE orders (order_id bigint PRIMARY KEY, customer_id bigint, status text,"
        " amount numeric(12, 2), note text, created_at timestamptz, updated_at timestamptz)"
    )
    shop.execute(
        f"""INSERT INTO orders SELECT id, id % 10007, 'placed', (id % 100000) / 100.0,
        'order ' || id || ' of customer ' || id % 10007, at, at
        FROM generate_series(0, {orders - 1}) AS id,
        LATERAL (SELECT to_timestamp({int(START.timestamp())} + id) AS at) moment""".encode()
    )
    shop.execute("VACUUM ANALYZE orders")


def _change(table: OrdersTable, shop: psycopg.Connection, changes: int) -> None:
    """Change orders on both sides."""
    before = dict(table.history.changed)
    table.send(changes)
    table.commit()
    for order, row in table.history.changed.items():
        if before.get(order, ()) == row:
            continue
        shop.execute("DELETE FROM orders WHERE order_id = %s", [order])
        if row is not None:
            shop.execute(
                "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [row[name] for name in (KEY, *_COLUMNS)],
            )


_COLUMNS = ("customer_id", "status", "amount", "note", "created_at", "updated_at")


def _cpu(process: psutil.Process) -> float:
    """Return the CPU seconds of a server and its sessions, while these are connected."""
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def _own_cpu() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)
