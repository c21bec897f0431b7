"""Prepare a source's PostgreSQL database, refresh its publication, and remove what was prepared."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from stacks.functions.bootstrap.data_api import DataApi, StatementFailed, patiently
from stacks.functions.bootstrap.demo import write_tickit
from stacks.functions.bootstrap.scram import verifier

DEMO_SCALE = 0.1
"""The part of TICKIT's full size: some 42,000 rows, which take less than a minute."""

_SLOT_PATIENCE_SECONDS = 60.0
"""A connector that was just deleted may hold its slot until PostgreSQL notices."""

# A refresh and a deployment may run at once. The Data API cannot return the type void, hence DO.
_ONE_AT_A_TIME = "DO $tributary$ BEGIN PERFORM pg_advisory_xact_lock(7281645203994); END $tributary$"

_STATEMENTS = ("setup", "later", "removal")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Preparation:
    """The SQL of `connectors.engines.postgres.preparation` for one source.

    setup                    statements of one transaction
    later                    the same for a later run, which passes over tables that cannot be published
    removal                  statements to run one by one; the last one removes the role
    unpublished              a query for the tables to publish that are not published
    readable_parts           a query for the partitions that the role may read, and must not
    left_out                 a query for the tables that match and cannot be published, with the reason
    patterns_without_table   a query for patterns that match nothing
    """

    role: str
    publication: str
    slot: str
    setup: tuple[str, ...]
    later: tuple[str, ...]
    removal: tuple[str, ...]
    unpublished: str
    readable_parts: str
    left_out: str
    patterns_without_table: str
    has_demo: bool

    @classmethod
    def from_json(cls, text: str) -> Preparation:
        content: dict[str, Any] = json.loads(text)
        return cls(**content | {name: tuple(content[name]) for name in _STATEMENTS})

    def to_json(self) -> str:
        """Return ASCII, because CloudFormation has lost other characters before."""
        return json.dumps(asdict(self), ensure_ascii=True)


def prepare(database: DataApi, preparation: Preparation, password: str, tell: Tell = print) -> list[str]:
    """Prepare everything, also repeatedly. Return remarks for a person. Raises StatementFailed."""
    if preparation.has_demo and write_tickit(database, DEMO_SCALE, tell):
        tell("the demo's tables are there")
    with database.transaction() as transaction:
        _set_up(transaction, preparation.setup)
        secret = _literal(verifier(password, secrets.token_bytes(16)))
        transaction.run(f"ALTER ROLE {_identifier(preparation.role)} PASSWORD {secret}")
    return _remarks(database, preparation)


def refresh(database: DataApi, preparation: Preparation, tell: Tell = print) -> list[str]:
    """Publish tables that were created in the meantime, and return them. Raises StatementFailed.

    The role loses the right to read partitions that were created in the meantime.

    `tell` gets each table that cannot be published, each time until it is mended. It stops no other one."""
    for table in _texts(database.run(preparation.left_out)):
        tell(f"left out: {table}")
    tables = _texts(database.run(preparation.unpublished))
    if tables or database.run(preparation.readable_parts):
        with database.transaction() as transaction:
            _set_up(transaction, preparation.later)
    return tables


def give_up(
    database: DataApi, preparation: Preparation, sleep: Callable[[float], None], tell: Tell = print
) -> None:
    """Remove what `prepare` created, as far as possible. Keep all tables of the source."""
    attempts = int(_SLOT_PATIENCE_SECONDS / 5)
    while attempts and _slot_is_active(database, preparation):
        tell("the replication slot is in use")
        sleep(5)
        attempts -= 1
    for statement in preparation.removal:
        try:
            patiently(partial(database.run, statement), seconds=30, tell=tell, sleep=sleep)
        except StatementFailed as error:
            tell(f"left as it is: {error}")


def give_up_role(database: DataApi, preparation: Preparation, tell: Tell = print) -> None:
    """Remove the role of a former preparation, after another one has created its own role."""
    try:
        database.run(preparation.removal[-1])
    except StatementFailed as error:
        tell(f"left as it is: {error}")


def _set_up(transaction: DataApi, statements: Sequence[str]) -> None:
    transaction.run(_ONE_AT_A_TIME)
    for statement in statements:
        transaction.run(statement)


def _remarks(database: DataApi, preparation: Preparation) -> list[str]:
    patterns = _texts(database.run(preparation.patterns_without_table))
    remarks = [f'no table matches "{pattern}" yet' for pattern in patterns]
    by_schema = "SELECT count(*) FROM pg_publication_namespace n JOIN pg_publication p ON p.oid = n.pnpubid"
    if database.run(f"{by_schema} WHERE p.pubname = {_literal(preparation.publication)}") == ["0"]:
        remarks.append("a table that is created later is published within a minute")
    return remarks


def _slot_is_active(database: DataApi, preparation: Preparation) -> bool:
    query = "SELECT count(*) FROM pg_replication_slots WHERE active AND slot_name = "
    return database.run(query + _literal(preparation.slot)) != ["0"]


def _texts(column: list[str | None]) -> list[str]:
    return [text for text in column if text is not None]


def _literal(text: str) -> str:
    """Return an SQL literal without a colon, which the Data API would read as a parameter."""
    quoted = text.replace("\\", "\\\\").replace("'", "''").replace(":", "\\x3a")
    return f"E'{quoted}'"


def _identifier(name: str) -> str:
    return "U&" + '"' + name.replace("\\", "\\\\").replace('"', '""').replace(":", "\\003a") + '"'
