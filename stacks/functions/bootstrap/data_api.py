"""Send statements through the RDS Data API, and retry what it refuses only for a while."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from botocore import exceptions
from botocore.exceptions import ClientError

Result = TypeVar("Result")

_PAUSE_SECONDS = 5.0

_STARTING = {
    "BadRequestException",
    "DatabaseErrorException",
    "DatabaseNotFoundException",
    "DatabaseResumingException",
    "DatabaseUnavailableException",
    "HttpEndpointNotEnabledException",
    "InternalServerErrorException",
    "InvalidDBParameterGroupState",
    "InvalidResourceStateException",
    "SecretsErrorException",
    "ServiceUnavailableError",
    "StatementTimeoutException",
    "ThrottlingException",
    "TransactionNotFoundException",
}
"""Refusals (in rds-data's and rds's models) of a cluster that starts, fails over or rotates its secret."""

_NO_ANSWER = (exceptions.ConnectionError, exceptions.HTTPClientError)

_DENIED = {"AccessDenied", "AccessDeniedException", "ForbiddenException"}
_DENIED_SECONDS = 120.0
"""A new role's policy takes effect within seconds, but not at once."""

_SQL_STATE = re.compile(r"SQLState: ([0-9A-Z]{5})")
_MYSQL_CODE = re.compile(r"Database error code: ([0-9]+)")
_PASSING_CODES = {"1040", "1205", "1213", "2006", "2013"}
"""Errors of MySQL: too many connections, lock waits, deadlocks, and lost connections."""
_PASSING_STATES = ("08", "28", "40", "53", "55P03", "57P")
"""Connections, logins during a rotation of the secret, serialization, resources, locks, and shutdowns."""


class StatementFailed(Exception):
    """The database refuses a statement. The message is the database's own, without the statement."""


class RdsData(Protocol):
    """The part of boto3's client `rds-data` that this module uses."""

    def begin_transaction(self, **request: Any) -> Mapping[str, Any]: ...

    def commit_transaction(self, **request: Any) -> Mapping[str, Any]: ...

    def rollback_transaction(self, **request: Any) -> Mapping[str, Any]: ...

    def execute_statement(self, **request: Any) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class DataApi:
    """One database of a cluster, used with the login in a secret."""

    client: RdsData
    cluster: str
    secret: str
    database: str
    transaction_id: str | None = field(default=None, kw_only=True)

    def run(self, statement: str, **texts: str) -> list[str | None]:
        """Run a statement with parameters `:name` and return the first column of the result, as texts.

        Raises StatementFailed, or ClientError if the statement is not at fault.
        """
        request: dict[str, Any] = {"sql": statement, **self._where, "database": self.database}
        if self.transaction_id is not None:
            request["transactionId"] = self.transaction_id
        if texts:
            request["parameters"] = [
                {"name": name, "value": {"stringValue": text}} for name, text in texts.items()
            ]
        try:
            answer = self.client.execute_statement(**request)
        except ClientError as error:
            if _is_refusal(error):
                raise StatementFailed(_message(error)) from None
            raise
        return [_text(record[0]) for record in answer.get("records", ())]

    @contextmanager
    def transaction(self) -> Iterator[DataApi]:
        """Run statements through the yielded value in one transaction."""
        begun = self.client.begin_transaction(**self._where, database=self.database)["transactionId"]
        try:
            yield DataApi(self.client, self.cluster, self.secret, self.database, transaction_id=begun)
        except BaseException:
            _quietly(lambda: self.client.rollback_transaction(**self._where, transactionId=begun))
            raise
        self.client.commit_transaction(**self._where, transactionId=begun)

    @property
    def _where(self) -> dict[str, str]:
        return {"resourceArn": self.cluster, "secretArn": self.secret}


def patiently(
    action: Callable[[], Result],
    seconds: float,
    tell: Callable[[str], None] = print,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Return the result of the action. Retry it for `seconds` while the cluster is not ready.

    Raises the action's last exception.
    """
    began = time.monotonic()
    while True:
        try:
            return action()
        except (ClientError, *_NO_ANSWER) as error:
            patience = _patience(error, seconds)
            if time.monotonic() - began + _PAUSE_SECONDS > patience:
                raise
            tell(f"not ready yet: {_message(error)}")
            sleep(_PAUSE_SECONDS)


def _patience(error: Exception, seconds: float) -> float:
    code = _code(error)
    if code in _DENIED:
        return min(seconds, _DENIED_SECONDS)
    return seconds if code is None or code in _STARTING else 0


def _is_refusal(error: ClientError) -> bool:
    """Return whether the database refuses the statement itself.

    Without an SQLState or a code of MySQL's, it has not seen the statement."""
    if (code := _MYSQL_CODE.search(_message(error))) is not None:
        return code[1] not in _PASSING_CODES
    state = _SQL_STATE.search(_message(error))
    return state is not None and not state[1].startswith(_PASSING_STATES)


def _code(error: Exception) -> str | None:
    """Return AWS's error code, or None if there was no answer."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else None


def _message(error: Exception) -> str:
    return str(error.response["Error"].get("Message", "")) if isinstance(error, ClientError) else str(error)


def _text(field_: Mapping[str, Any]) -> str | None:
    """Return a field of a record as text. The field is a union with one member set."""
    return None if field_.get("isNull") else str(next(iter(field_.values())))


def _quietly(action: Callable[[], object]) -> None:
    """Run a rollback. It may fail, because the error that led here may have ended the transaction."""
    try:
        action()
    except (ClientError, *_NO_ANSWER) as error:
        print(f"no rollback: {_message(error)}")
