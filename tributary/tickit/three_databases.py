"""TICKIT, spread over three databases: a web shop, the events that it sells tickets for, and its customers.

The web shop is a MariaDB. It has no foreign keys, because what its rows refer to is in other databases.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg
import pymysql

from tributary.tickit.generator import COMMISSION, Row, price
from tributary.tickit.load import is_loaded, write_tickit
from tributary.tickit.schema import CATEGORY, DATE, EVENT, LISTING, SALES, USERS, VENUE, TickitTable
from tributary.tickit.workload import (
    Exchange,
    Plan,
    Summary,
    change_preferences,
    retag_event,
    sign_up,
    wait_until,
)

SHOP = "shop"
"""The database of the web shop."""

SHOP_TABLES = (DATE, LISTING, SALES)
EVENT_TABLES = (CATEGORY, VENUE, EVENT)
CUSTOMER_TABLES = (USERS,)

_SHOP_DDL = (
    """CREATE TABLE shop.date (
        dateid smallint PRIMARY KEY,
        caldate date NOT NULL,
        day char(2) NOT NULL,
        week smallint NOT NULL,
        month varchar(5) NOT NULL,
        qtr varchar(5) NOT NULL,
        year smallint NOT NULL,
        holiday boolean
    )""",
    """CREATE TABLE shop.listing (
        listid int PRIMARY KEY,
        sellerid int NOT NULL,
        eventid int NOT NULL,
        dateid smallint NOT NULL,
        numtickets smallint NOT NULL,
        priceperticket decimal(8,2),
        totalprice decimal(8,2),
        listtime datetime(6)
    )""",
    """CREATE TABLE shop.sales (
        salesid int PRIMARY KEY,
        listid int NOT NULL,
        sellerid int NOT NULL,
        buyerid int NOT NULL,
        eventid int NOT NULL,
        dateid smallint NOT NULL,
        qtysold smallint NOT NULL,
        pricepaid decimal(8,2),
        commission decimal(8,2),
        saletime timestamp(6) NULL,
        INDEX (listid)
    )""",
)
_LOADED = (
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = %s AND table_name IN (%s, %s, %s)"
)

ShopSession = pymysql.connections.Connection
Rows = Mapping[str, list[Row]]


def load_shop(session: ShopSession, rows: Rows) -> int:
    """Create and fill the web shop's tables, unless they exist. Return the number of rows."""
    with session.cursor() as cursor:
        cursor.execute(_LOADED, (SHOP, *(table.name for table in SHOP_TABLES)))
        (found,) = cursor.fetchone() or (0,)
        if found == len(SHOP_TABLES):
            return 0
        for ddl in _SHOP_DDL:
            cursor.execute(ddl)
        session.begin()
        for table in SHOP_TABLES:
            values = ", ".join(["%s"] * len(table.columns))
            cursor.executemany(f"INSERT INTO shop.{table.name} VALUES ({values})", rows[table.name])
        session.commit()
    return sum(len(rows[table.name]) for table in SHOP_TABLES)


def load_events(connection: psycopg.Connection, rows: Rows) -> int:
    """Create and fill the tables of events, unless they exist. Return the number of rows."""
    return _load_postgres(connection, rows, EVENT_TABLES)


def load_customers(connection: psycopg.Connection, rows: Rows) -> int:
    """Create and fill the table of customers, unless it exists. Return the number of rows."""
    return _load_postgres(connection, rows, CUSTOMER_TABLES)


def _load_postgres(connection: psycopg.Connection, rows: Rows, tables: Sequence[TickitTable]) -> int:
    if is_loaded(connection, tables):
        return 0
    return write_tickit(connection, rows, tables=tables, indexes=())


@dataclass
class ThreeDatabases:
    """Sessions of the three databases, in which each statement commits by itself, and what trade needs."""

    shop: ShopSession
    events: Exchange
    customers: Exchange
    random: random.Random

    def row(self, query: str, *parameters: object) -> tuple[Any, ...] | None:
        """Return the first row that the web shop's database has for the query."""
        with self.shop.cursor() as cursor:
            cursor.execute(query, parameters)
            found: tuple[Any, ...] | None = cursor.fetchone()
            return found

    def change(self, statement: str, *parameters: object) -> int:
        """Run a statement in the web shop's database, and return the number of changed rows."""
        with self.shop.cursor() as cursor:
            return int(cursor.execute(statement, parameters))

    def any_id(self, table: str, column: str) -> int:
        found = self.row(f"SELECT max({column}) FROM shop.{table}")
        return self.random.randrange(found[0]) + 1 if found and found[0] else 1


Transaction = Callable[[ThreeDatabases], int]


def trade(
    shop: ShopSession,
    events: psycopg.Connection,
    customers: psycopg.Connection,
    plan: Plan,
    stop: threading.Event | None = None,
) -> Summary:
    """Run the plan's transactions, each in one of the databases. The same plan makes the same changes."""
    source = random.Random(plan.seed)
    databases = ThreeDatabases(shop, Exchange(events, source), Exchange(customers, source), source)
    transactions, weights = zip(*_ORDINARY, strict=True)
    counts: Counter[str] = Counter()
    changes = 0
    started = time.monotonic()
    for number in range(plan.transactions):
        if stop is not None and stop.is_set():
            break
        is_half = number == plan.transactions // 2
        transaction = add_sales_channel if is_half else source.choices(transactions, weights)[0]
        changes += transaction(databases)
        counts[transaction.__name__.strip("_").replace("_", " ")] += 1
        if plan.rate is not None:
            wait_until(started + (number + 1) / plan.rate, stop)
    return Summary(dict(counts), changes)


def sell_tickets(databases: ThreeDatabases) -> int:
    """Sell some tickets of a listing to a customer."""
    listing = databases.row(
        """SELECT listid, sellerid, eventid, dateid, numtickets, priceperticket FROM shop.listing
        WHERE listid >= %s AND numtickets > 0 ORDER BY listid LIMIT 1""",
        databases.any_id("listing", "listid"),
    )
    if listing is None:
        return 0
    listid, sellerid, eventid, dateid, offered, each = listing
    quantity = databases.random.randrange(1, min(offered, 8) + 1)
    paid = each * quantity
    databases.shop.begin()
    changed = databases.change(
        """INSERT INTO shop.sales (salesid, listid, sellerid, buyerid, eventid, dateid, qtysold, pricepaid,
            commission, saletime)
        SELECT max(salesid) + 1, %s, %s, %s, %s, %s, %s, %s, %s, %s FROM shop.sales""",
        listid,
        sellerid,
        databases.customers.pick(databases.customers.last_user),
        eventid,
        dateid,
        quantity,
        paid,
        (paid * COMMISSION).quantize(Decimal("0.01")),
        databases.customers.tick(),
    )
    changed += databases.change(
        """UPDATE shop.listing
        SET totalprice = (numtickets - %s) * priceperticket, numtickets = numtickets - %s
        WHERE listid = %s""",
        quantity,
        quantity,
        listid,
    )
    databases.shop.commit()
    return changed


def change_price(databases: ThreeDatabases) -> int:
    """Change the price of a listing."""
    each = price(databases.random)
    return databases.change(
        """UPDATE shop.listing SET priceperticket = %s, totalprice = least(%s * numtickets, 999999.99)
        WHERE listid = %s""",
        each,
        each,
        databases.any_id("listing", "listid"),
    )


def refund_sale(databases: ThreeDatabases) -> int:
    """Delete a sale."""
    return databases.change("DELETE FROM shop.sales WHERE salesid = %s", databases.any_id("sales", "salesid"))


def add_sales_channel(databases: ThreeDatabases) -> int:
    """Add a column to a table while its rows change."""
    databases.change("ALTER TABLE shop.sales ADD COLUMN IF NOT EXISTS channel varchar(10)")
    return databases.change(
        "UPDATE shop.sales SET channel = 'web' WHERE salesid <= %s", 1 + databases.random.randrange(20)
    )


def _retag_event(databases: ThreeDatabases) -> int:
    return retag_event(databases.events)


def _sign_up(databases: ThreeDatabases) -> int:
    return sign_up(databases.customers)


def _change_preferences(databases: ThreeDatabases) -> int:
    return change_preferences(databases.customers)


_ORDINARY: tuple[tuple[Transaction, int], ...] = (
    (sell_tickets, 50),
    (change_price, 18),
    (refund_sale, 8),
    (_change_preferences, 9),
    (_retag_event, 9),
    (_sign_up, 6),
)
"""The transactions with their number in a hundred."""
