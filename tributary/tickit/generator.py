"""Generate TICKIT's rows from a scale and a seed, always the same rows and with valid references."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tributary.tickit import vocabulary
from tributary.tickit.schema import CATEGORY, DATE, EVENT, LISTING, SALES, TABLES, USERS, VENUE

Row = tuple[Any, ...]

FIRST_DAY = date(2008, 1, 1)
FIRST_DATE_ID = 1827
"""TICKIT's number for the first day of 2008."""

COMMISSION = Decimal("0.15")
_CENT = Decimal("0.01")


def generate(scale: float, seed: int = 2008) -> Mapping[str, list[Row]]:
    """Return the rows of all tables by table name, with values in the order of `TickitTable.columns`.

    A table's rows depend on the seed, the scale and the tables before it, never on the clock.
    """
    count = {table.name: table.rows_at(scale) for table in TABLES}
    events = list(_events(_random(seed, EVENT.name), count[EVENT.name], count[VENUE.name]))
    listings = list(_listings(_random(seed, LISTING.name), count[LISTING.name], count[USERS.name], events))
    sales_count = min(count[SALES.name], len(listings))
    return {
        CATEGORY.name: [(number, *words) for number, words in enumerate(vocabulary.CATEGORIES, start=1)],
        DATE.name: list(calendar()),
        VENUE.name: list(_venues(_random(seed, VENUE.name), count[VENUE.name])),
        USERS.name: [user(_random(seed, f"user {number}"), number) for number in _ids(count[USERS.name])],
        EVENT.name: events,
        LISTING.name: listings,
        SALES.name: list(_sales(_random(seed, SALES.name), sales_count, count[USERS.name], listings)),
    }


def calendar() -> Iterator[Row]:
    """Yield every day of TICKIT's year. 2008 was a leap year, but TICKIT has only 365 of its days."""
    for number in range(DATE.full_size):
        day = FIRST_DAY + timedelta(days=number)
        yield (
            FIRST_DATE_ID + number,
            day,
            day.strftime("%a").upper()[:2],
            number // 7 + 1,
            day.strftime("%b").upper(),
            str((day.month + 2) // 3),
            day.year,
            (day.month, day.day) in {(1, 1), (7, 4), (12, 25)},
        )


def user(source: random.Random, userid: int) -> Row:
    """Return a user. The `username` comes from the id, so it is unique."""
    first, last = source.choice(vocabulary.FIRST_NAMES), source.choice(vocabulary.LAST_NAMES)
    city, state = source.choice(vocabulary.CITIES)
    likes = tuple(source.choice((True, False, None)) for _ in range(10))
    phone = f"({source.randrange(200, 999)}) {source.randrange(200, 999)}-{source.randrange(10_000):04d}"
    return (
        userid,
        _username(userid),
        first,
        last,
        city,
        state,
        f"{first}.{last}{userid}@example.org".replace("'", "").lower(),
        phone,
        *likes,
        preferences(source),
    )


def preferences(source: random.Random) -> str | None:
    """Return the JSON text of a user's preferences. Some users have none."""
    if source.random() < 0.1:
        return None
    return json.dumps(
        {
            "language": source.choice(vocabulary.LANGUAGES),
            "newsletter": source.random() < 0.5,
            "max_price": source.randrange(20, 500),
            "seats": source.sample(["front", "aisle", "balcony"], source.randrange(3)),
        }
    )


def tags(source: random.Random) -> list[str] | None:
    """Return an event's tags: unknown (None), an empty list, or some."""
    if source.random() < 0.1:
        return None
    return source.sample(vocabulary.TAGS, source.randrange(4))


def price(source: random.Random) -> Decimal:
    """Return the price of one ticket."""
    return Decimal(source.randrange(20_00, 500_00)) / 100


def _random(seed: int, purpose: str) -> random.Random:
    # Each purpose has its own generator, so a table's rows do not depend on how many numbers another drew.
    return random.Random(f"{seed} {purpose}")


def _ids(count: int) -> range:
    return range(1, count + 1)


def _username(userid: int) -> str:
    letters = ""
    number = userid * 104_729 % 26**6
    for _ in range(6):
        number, letter = divmod(number, 26)
        letters += chr(ord("A") + letter)
    return f"{letters}{userid % 100:02d}"


def _venues(source: random.Random, count: int) -> Iterator[Row]:
    for venueid in _ids(count):
        city, state = source.choice(vocabulary.CITIES)
        name = f"{source.choice(vocabulary.LAST_NAMES)} {source.choice(vocabulary.VENUE_KINDS)}"
        seats = None if source.random() < 0.3 else source.randrange(500, 90_000, 100)
        yield (venueid, name, city, state, seats)


def _events(source: random.Random, count: int, venues: int) -> Iterator[Row]:
    for eventid in _ids(count):
        catid = source.randrange(len(vocabulary.CATEGORIES)) + 1
        group = vocabulary.CATEGORIES[catid - 1][0]
        day = source.randrange(DATE.full_size)
        start = datetime.combine(FIRST_DAY, datetime.min.time()) + timedelta(
            days=day, hours=source.choice((14, 15, 19, 20)), minutes=source.choice((0, 30))
        )
        name = source.choice(vocabulary.EVENT_NAMES[group])
        yield (eventid, source.randrange(venues) + 1, catid, FIRST_DATE_ID + day, name, start, tags(source))


def _listings(source: random.Random, count: int, users: int, events: list[Row]) -> Iterator[Row]:
    for listid in _ids(count):
        event = source.choice(events)
        start = event[EVENT.columns.index("starttime")]
        listed = start - timedelta(microseconds=source.randrange(1, 60 * 86_400_000_000))
        numtickets, each = source.randrange(1, 31), price(source)
        total = min(each * numtickets, Decimal("999999.99"))
        yield (listid, source.randrange(users) + 1, event[0], event[3], numtickets, each, total, listed)


def _sales(source: random.Random, count: int, users: int, listings: list[Row]) -> Iterator[Row]:
    """Yield at most one sale for each listing, so that nobody sells more than was offered."""
    for salesid, listing in enumerate(source.sample(listings, count), start=1):
        listid, sellerid, eventid, dateid, offered, each, _, listed = listing
        buyerid = (sellerid + source.randrange(users - 1)) % users + 1
        quantity = source.randrange(1, offered + 1)
        paid = each * quantity
        sold = listed.replace(tzinfo=UTC) + timedelta(microseconds=source.randrange(1, 86_400_000_000))
        commission = (paid * COMMISSION).quantize(_CENT)
        yield (salesid, listid, sellerid, buyerid, eventid, dateid, quantity, paid, commission, sold)
