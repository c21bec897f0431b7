"""A stand-in for the RDS Data API in front of a real PostgreSQL, as strict as it about statements."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from botocore.exceptions import ClientError

MAX_REQUEST_BYTES = 4 * 1024 * 1024
_PARAMETER = re.compile(r":(\w*)")


def refusal(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "ExecuteStatement")


@dataclass
class DataApiOnPostgres:
    """boto3's client `rds-data`, as the user of `conninfo`.

    A statement is sent as PostgreSQL's extended protocol does, which takes one at a time. A colon outside of
    the given parameters' names is refused, wherever it stands, as is a semicolon at the end.

    failures    raised, one a request, before anything else is answered
    statements  what was run
    """

    conninfo: str
    failures: list[Exception] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._transactions: dict[str, psycopg.Connection] = {}
        self._numbers = itertools.count()

    def begin_transaction(self, **request: Any) -> Mapping[str, Any]:
        self._fail()
        _check(request, {"resourceArn", "secretArn", "database"})
        connection = psycopg.connect(self.conninfo)
        number = f"transaction-{next(self._numbers)}"
        self._transactions[number] = connection
        return {"transactionId": number}

    def commit_transaction(self, **request: Any) -> Mapping[str, Any]:
        _check(request, {"resourceArn", "secretArn", "transactionId"})
        with self._transactions.pop(request["transactionId"]) as connection:
            connection.commit()
        return {"transactionStatus": "Transaction Committed"}

    def rollback_transaction(self, **request: Any) -> Mapping[str, Any]:
        _check(request, {"resourceArn", "secretArn", "transactionId"})
        connection = self._transactions.pop(request["transactionId"])
        connection.rollback()
        connection.close()
        return {"transactionStatus": "Rollback Complete"}

    def execute_statement(self, **request: Any) -> Mapping[str, Any]:
        self._fail()
        _check(request, {"resourceArn", "secretArn", "database", "sql"}, {"transactionId", "parameters"})
        assert len(str(request).encode()) < MAX_REQUEST_BYTES
        self.statements.append(request["sql"])
        values = {each["name"]: each["value"]["stringValue"] for each in request.get("parameters", [])}
        try:
            if "transactionId" in request:
                return _run(self._transactions[request["transactionId"]], request["sql"], values)
            with psycopg.connect(self.conninfo, autocommit=True) as connection:
                return _run(connection, request["sql"], values)
        except psycopg.Error as error:
            message = f"ERROR: {error.diag.message_primary}; SQLState: {error.sqlstate}"
            raise refusal("DatabaseErrorException", message) from None

    @property
    def open_transactions(self) -> int:
        return len(self._transactions)

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


def _run(connection: psycopg.Connection, statement: str, values: Mapping[str, str]) -> Mapping[str, Any]:
    names = _PARAMETER.findall(statement)
    if sorted(names) != sorted(values) or statement.rstrip().endswith(";"):
        raise refusal("DatabaseErrorException", f"ERROR: colon or semicolon in {statement}; SQLState: 42601")
    as_psycopg = _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%") if values else statement)
    cursor = connection.execute(as_psycopg.encode(), dict(values) or None, prepare=True)
    rows: Sequence[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
    return {"records": [[_field(value) for value in row] for row in rows]}


def _field(value: Any) -> Mapping[str, Any]:
    match value:
        case None:
            return {"isNull": True}
        case bool():
            return {"booleanValue": value}
        case int():
            return {"longValue": value}
        case str():
            return {"stringValue": value}
        case _:
            raise refusal("UnsupportedResultException", type(value).__name__)


def _check(
    request: Mapping[str, Any], required: set[str], optional: frozenset[str] | set[str] = frozenset()
) -> None:
    """As botocore would."""
    assert required <= set(request) <= required | optional, sorted(request)
    assert all(request[name] for name in required)
