"""Statements of a person in the shop's database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tributary.contract.errors import TributaryError


class ShopRefuses(TributaryError):
    """The shop's database cannot do what it was asked for."""


@dataclass(frozen=True)
class Answer:
    """What a statement has done, as PostgreSQL tells it, and its rows if it has any. None: it has no rows."""

    told: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] | None = None


def run_statement(connection: psycopg.Connection, statement: str) -> Answer:
    """Run a statement and commit it. Raises ShopRefuses."""
    with shop_errors(), connection.cursor() as cursor:
        cursor.execute(statement.encode())
        told = cursor.statusmessage or ""
        if cursor.description is None:
            return Answer(told)
        return Answer(told, [column.name for column in cursor.description], cursor.fetchall())


@contextmanager
def shop_errors() -> Iterator[None]:
    """Raise ShopRefuses for an error of the database."""
    try:
        yield
    except psycopg.Error as error:
        raise ShopRefuses("the shop's database refuses", found=" ".join(str(error).split())) from error
