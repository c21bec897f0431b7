"""The seven tables of TICKIT in PostgreSQL, with their full sizes in rows.

They come from the TICKIT sample database of the Amazon Redshift documentation. We added enforced constraints,
a JSON column (`users.preferences`), an array column (`event.tags`) and a time zone for `saletime`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

SCHEMA = "public"


@dataclass(frozen=True)
class TickitTable:
    """A table with its DDL, its columns in the order of the generated rows, and its full size in rows.

    `scaled` is false if the size does not depend on the amount of trade.
    """

    name: str
    columns: tuple[str, ...]
    ddl: LiteralString
    full_size: int
    scaled: bool = True

    def rows_at(self, scale: float) -> int:
        """Return the number of rows at a scale: at least two, because other tables refer to them."""
        return max(2, round(self.full_size * scale)) if self.scaled else self.full_size


CATEGORY = TickitTable(
    "category",
    ("catid", "catgroup", "catname", "catdesc"),
    """CREATE TABLE category (
        catid smallint PRIMARY KEY,
        catgroup varchar(10) NOT NULL,
        catname varchar(10) NOT NULL,
        catdesc varchar(50)
    )""",
    full_size=11,
    scaled=False,
)

DATE = TickitTable(
    "date",
    ("dateid", "caldate", "day", "week", "month", "qtr", "year", "holiday"),
    # A nightly job truncates and refills the calendar, so nothing refers to it by a constraint.
    """CREATE TABLE date (
        dateid smallint PRIMARY KEY,
        caldate date NOT NULL,
        day char(2) NOT NULL,
        week smallint NOT NULL,
        month varchar(5) NOT NULL,
        qtr varchar(5) NOT NULL,
        year smallint NOT NULL,
        holiday boolean DEFAULT false
    )""",
    full_size=365,
    scaled=False,
)

VENUE = TickitTable(
    "venue",
    ("venueid", "venuename", "venuecity", "venuestate", "venueseats"),
    """CREATE TABLE venue (
        venueid smallint PRIMARY KEY,
        venuename varchar(100) NOT NULL,
        venuecity varchar(30),
        venuestate char(2),
        venueseats integer
    )""",
    full_size=202,
)

USERS = TickitTable(
    "users",
    (
        "userid",
        "username",
        "firstname",
        "lastname",
        "city",
        "state",
        "email",
        "phone",
        "likesports",
        "liketheatre",
        "likeconcerts",
        "likejazz",
        "likeclassical",
        "likeopera",
        "likerock",
        "likevegas",
        "likebroadway",
        "likemusicals",
        "preferences",
    ),
    """CREATE TABLE users (
        userid integer PRIMARY KEY,
        username varchar(8) NOT NULL UNIQUE,
        firstname varchar(30),
        lastname varchar(30),
        city varchar(30),
        state char(2),
        email varchar(100),
        phone varchar(14),
        likesports boolean,
        liketheatre boolean,
        likeconcerts boolean,
        likejazz boolean,
        likeclassical boolean,
        likeopera boolean,
        likerock boolean,
        likevegas boolean,
        likebroadway boolean,
        likemusicals boolean,
        preferences jsonb
    )""",
    full_size=49_990,
)

EVENT = TickitTable(
    "event",
    ("eventid", "venueid", "catid", "dateid", "eventname", "starttime", "tags"),
    """CREATE TABLE event (
        eventid integer PRIMARY KEY,
        venueid smallint NOT NULL REFERENCES venue,
        catid smallint NOT NULL REFERENCES category,
        dateid smallint NOT NULL,
        eventname varchar(200),
        starttime timestamp,
        tags text[]
    )""",
    full_size=8_798,
)

LISTING = TickitTable(
    "listing",
    ("listid", "sellerid", "eventid", "dateid", "numtickets", "priceperticket", "totalprice", "listtime"),
    """CREATE TABLE listing (
        listid integer PRIMARY KEY,
        sellerid integer NOT NULL REFERENCES users ON UPDATE CASCADE,
        eventid integer NOT NULL REFERENCES event,
        dateid smallint NOT NULL,
        numtickets smallint NOT NULL CHECK (numtickets >= 0),
        priceperticket numeric(8,2),
        totalprice numeric(8,2),
        listtime timestamp
    )""",
    full_size=192_497,
)

SALES = TickitTable(
    "sales",
    (
        "salesid",
        "listid",
        "sellerid",
        "buyerid",
        "eventid",
        "dateid",
        "qtysold",
        "pricepaid",
        "commission",
        "saletime",
    ),
    """CREATE TABLE sales (
        salesid integer PRIMARY KEY,
        listid integer NOT NULL REFERENCES listing,
        sellerid integer NOT NULL REFERENCES users ON UPDATE CASCADE,
        buyerid integer NOT NULL REFERENCES users ON UPDATE CASCADE,
        eventid integer NOT NULL REFERENCES event,
        dateid smallint NOT NULL,
        qtysold smallint NOT NULL CHECK (qtysold > 0),
        pricepaid numeric(8,2),
        commission numeric(8,2),
        saletime timestamptz
    )""",
    full_size=172_456,
)

TABLES = (CATEGORY, DATE, VENUE, USERS, EVENT, LISTING, SALES)
"""The tables in loading order: a table comes after the tables that it refers to."""

INDEXES: tuple[LiteralString, ...] = (
    "CREATE INDEX ON listing (sellerid)",
    "CREATE INDEX ON sales (listid)",
    "CREATE INDEX ON sales (sellerid)",
    "CREATE INDEX ON sales (buyerid)",
)
"""Indexes for the cascade of a changed user id and for the refund of a sale."""
