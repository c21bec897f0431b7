"""The workload of a ticket exchange: a trading day's transactions, and rare ones that trip up pipelines."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from tributary.tickit.generator import COMMISSION, Row, calendar, preferences, price, tags, user
from tributary.tickit.schema import DATE, SALES, USERS

Connection = psycopg.Connection
Transaction = Callable[["Exchange"], int]
"""A function that does the work of one transaction and returns the number of row changes."""


@dataclass(frozen=True)
class Plan:
    """The number of transactions, their rate a second (None: as fast as possible), and their seed.

    The first `spared_listings` stay as they are, with the tickets sold of them."""

    transactions: int
    rate: float | None
    seed: int = 1
    spared_listings: int = 0


@dataclass(frozen=True)
class Summary:
    """The work done: the number of transactions by name, and the total of row changes."""

    transactions: Mapping[str, int]
    changes: int


class Exchange:
    """The state that transactions share: a connection, a random generator, and the highest ids in use.

    An id is looked up when it is first needed. So the database may lack tables that no transaction uses.
    """

    def __init__(self, connection: Connection, source: random.Random, spared_listings: int = 0) -> None:
        self.connection = connection
        self.random = source
        self.spared_listings = spared_listings
        self.now = datetime(2009, 1, 1, 9, tzinfo=UTC)

    @cached_property
    def last_user(self) -> int:
        return self._one("SELECT max(userid) FROM users")

    @cached_property
    def last_event(self) -> int:
        return self._one("SELECT max(eventid) FROM event")

    @cached_property
    def last_listing(self) -> int:
        return self._one("SELECT max(listid) FROM listing")

    @cached_property
    def last_sale(self) -> int:
        return self._one("SELECT max(salesid) FROM sales")

    @cached_property
    def has_channel(self) -> bool:
        return bool(
            self._one(
                """SELECT count(*) FROM information_schema.columns
                WHERE table_name = 'sales' AND column_name = 'channel'"""
            )
        )

    def tick(self) -> datetime:
        """Advance the exchange's own clock, which depends only on the seed, and return its time."""
        self.now += timedelta(microseconds=self.random.randrange(1, 60_000_000))
        return self.now

    def pick(self, last: int) -> int:
        return self.random.randrange(last) + 1

    def pick_listing(self) -> int:
        return self.spared_listings + self.pick(self.last_listing - self.spared_listings)

    def row(self, query: LiteralString, *parameters: object) -> Row | None:
        return self.connection.execute(query, parameters).fetchone()

    def change(self, statement: LiteralString, *parameters: object) -> int:
        return self.connection.execute(statement, parameters).rowcount

    def insert(self, table: str, row: Mapping[str, object]) -> int:
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join(sql.Placeholder() * len(row)),
        )
        return self.connection.execute(statement, tuple(row.values())).rowcount

    def _one(self, query: LiteralString) -> int:
        row = self.row(query)
        return int(row[0] or 0) if row else 0


def apply_workload(
    connection: Connection,
    plan: Plan,
    progress: Callable[[str, int], None] = lambda *_: None,
    stop: threading.Event | None = None,
) -> Summary:
    """Run the plan's transactions on a database with TICKIT, and commit each separately.

    The same plan on the same database makes the same changes. `progress` is called with each transaction's
    name and number of changed rows. `stop` ends the work before the next transaction.
    """
    exchange = Exchange(connection, random.Random(plan.seed), plan.spared_listings)
    counts: Counter[str] = Counter()
    changes = 0
    started = time.monotonic()
    for number, transaction in enumerate(schedule(plan)):
        if stop is not None and stop.is_set():
            break
        with connection.transaction():
            changed = transaction(exchange)
        counts[_name(transaction)] += 1
        changes += changed
        progress(_name(transaction), changed)
        if plan.rate is not None:
            wait_until(started + (number + 1) / plan.rate, stop)
    return Summary(dict(counts), changes)


def schedule(plan: Plan) -> Iterator[Transaction]:
    """Yield the plan's transactions: ordinary ones at random, and each rare one at its fixed place."""
    source = random.Random(f"{plan.seed} schedule")
    transactions, weights = zip(*_ORDINARY, strict=True)
    rare = deque(_RARE)
    for number in range(plan.transactions):
        if rare and number >= int(plan.transactions * rare[0][1]):
            yield rare.popleft()[0]
        else:
            yield source.choices(transactions, weights)[0]


def sell_tickets(exchange: Exchange) -> int:
    """Sell some tickets of a listing."""
    listing = exchange.row(
        """SELECT listid, sellerid, eventid, dateid, numtickets, priceperticket FROM listing
        WHERE listid >= %s AND numtickets > 0 ORDER BY listid LIMIT 1 FOR UPDATE""",
        exchange.pick_listing(),
    )
    if listing is None:
        return 0
    listid, sellerid, eventid, dateid, offered, each = listing
    buyer = exchange.row(
        "SELECT userid FROM users WHERE userid <> %s AND userid >= %s ORDER BY userid LIMIT 1",
        sellerid,
        exchange.pick(exchange.last_user - 1),
    )
    if buyer is None:
        return 0
    quantity = exchange.random.randrange(1, min(offered, 8) + 1)
    paid = each * quantity
    exchange.last_sale += 1
    sale: dict[str, object] = {
        "salesid": exchange.last_sale,
        "listid": listid,
        "sellerid": sellerid,
        "buyerid": buyer[0],
        "eventid": eventid,
        "dateid": dateid,
        "qtysold": quantity,
        "pricepaid": paid,
        "commission": (paid * COMMISSION).quantize(Decimal("0.01")),
        "saletime": exchange.tick(),
    }
    if exchange.has_channel:
        sale["channel"] = exchange.random.choice(("web", "phone", None))
    return exchange.insert(SALES.name, sale) + exchange.change(
        """UPDATE listing SET numtickets = numtickets - %s, totalprice = (numtickets - %s) * priceperticket
        WHERE listid = %s""",
        quantity,
        quantity,
        listid,
    )


def change_price(exchange: Exchange) -> int:
    """Change the price of a listing."""
    each = price(exchange.random)
    return exchange.change(
        """UPDATE listing SET priceperticket = %s, totalprice = least(%s * numtickets, 999999.99)
        WHERE listid = %s""",
        each,
        each,
        exchange.pick_listing(),
    )


def list_tickets(exchange: Exchange) -> int:
    """Offer tickets in a new listing."""
    event = exchange.row(
        "SELECT eventid, dateid FROM event WHERE eventid = %s", exchange.pick(exchange.last_event)
    )
    seller = exchange.row(
        "SELECT userid FROM users WHERE userid >= %s ORDER BY userid LIMIT 1",
        exchange.pick(exchange.last_user),
    )
    if event is None or seller is None:
        return 0
    exchange.last_listing += 1
    offered, each = exchange.random.randrange(1, 31), price(exchange.random)
    return exchange.change(
        "INSERT INTO listing VALUES (%s, %s, %s, %s, %s, %s, least(%s, 999999.99), %s)",
        exchange.last_listing,
        seller[0],
        *event,
        offered,
        each,
        offered * each,
        exchange.tick().replace(tzinfo=None),
    )


def refund_sale(exchange: Exchange) -> int:
    """Delete a sale and offer its tickets again."""
    sale = exchange.row(
        "DELETE FROM sales WHERE salesid = %s AND listid > %s RETURNING listid, qtysold",
        exchange.pick(exchange.last_sale),
        exchange.spared_listings,
    )
    if sale is None:
        return 0
    listid, quantity = sale
    return 1 + exchange.change(
        "UPDATE listing SET numtickets = numtickets + %s WHERE listid = %s", quantity, listid
    )


def sign_up(exchange: Exchange) -> int:
    """Add a user."""
    exchange.last_user += 1
    row = user(exchange.random, exchange.last_user)
    return exchange.insert(USERS.name, dict(zip(USERS.columns, row, strict=True)))


def change_preferences(exchange: Exchange) -> int:
    """Edit the JSON of a user's preferences, or replace or remove it."""
    userid = exchange.pick(exchange.last_user)
    if exchange.random.random() < 0.3:
        return exchange.change(
            "UPDATE users SET preferences = %s WHERE userid = %s", preferences(exchange.random), userid
        )
    note = Jsonb({"note": exchange.random.choice(("call me", "кто там?", 'tab\tand "quote"', None))})
    return exchange.change(
        """UPDATE users SET preferences = coalesce(preferences, '{}') || %s, likejazz = NOT likejazz
        WHERE userid = %s""",
        note,
        userid,
    )


def retag_event(exchange: Exchange) -> int:
    """Change an event's tags and start time."""
    return exchange.change(
        "UPDATE event SET tags = %s, starttime = starttime + %s WHERE eventid = %s",
        tags(exchange.random),
        timedelta(minutes=exchange.random.choice((-30, 0, 15))),
        exchange.pick(exchange.last_event),
    )


def give_user_another_id(exchange: Exchange) -> int:
    """Change a user's primary key, and with it every row that refers to the user."""
    found = exchange.row(
        """SELECT userid, (SELECT count(*) FROM listing WHERE sellerid = userid)
            + (SELECT count(*) FROM sales WHERE sellerid = userid)
            + (SELECT count(*) FROM sales WHERE buyerid = userid)
        FROM users WHERE userid >= %s ORDER BY userid LIMIT 1""",
        exchange.pick(exchange.last_user),
    )
    if found is None:
        return 0
    userid, references = found
    exchange.last_user += 1
    return int(references) + exchange.change(
        "UPDATE users SET userid = %s WHERE userid = %s", exchange.last_user, userid
    )


def add_sales_channel(exchange: Exchange) -> int:
    """Add a column to a table while its rows change."""
    exchange.change("ALTER TABLE sales ADD COLUMN IF NOT EXISTS channel text")
    exchange.has_channel = True
    return 0


def rebuild_calendar(exchange: Exchange) -> int:
    """Truncate the calendar and refill it without the first quarter."""
    exchange.change("TRUNCATE date")
    days = (dict(zip(DATE.columns, day, strict=True)) for day in calendar())
    return sum(exchange.insert(DATE.name, day) for day in days if day["qtr"] != "1")


_ORDINARY: tuple[tuple[Transaction, int], ...] = (
    (sell_tickets, 50),
    (change_price, 15),
    (list_tickets, 12),
    (refund_sale, 8),
    (change_preferences, 6),
    (retag_event, 5),
    (sign_up, 4),
)
"""The ordinary transactions with their number in a hundred."""

_RARE: tuple[tuple[Transaction, float], ...] = (
    (give_user_another_id, 0.25),
    (add_sales_channel, 0.4),
    (rebuild_calendar, 0.6),
    (give_user_another_id, 0.75),
)
"""The rare transactions, each with the share of the plan after which it happens once."""


def _name(transaction: Transaction) -> str:
    return transaction.__name__.replace("_", " ")


def wait_until(moment: float, stop: threading.Event | None) -> None:
    """Return at a time of the monotonic clock, or as soon as `stop` is set."""
    left = moment - time.monotonic()
    if left <= 0:
        return
    if stop is None:
        time.sleep(left)
    else:
        stop.wait(left)
