"""Check for CloudFormation that an administrator has prepared an existing database.

The function logs in as Debezium will, and runs a query that returns what is missing. It changes nothing.
Without an answer, CloudFormation waits for an hour, so the function answers in every case.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]
Query = Callable[[Mapping[str, str], str], list[str]]
"""Log in with the properties of a request and a password, and return what the query finds missing."""

_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 5.0
"""The network interface and the rules of security groups work some seconds after they are created."""

_MAX_REASON = 1000
"""Characters. CloudFormation takes 4,096 bytes for a whole answer."""


class NotPrepared(Exception):
    """The database cannot be read by Debezium as it is."""


@dataclass(frozen=True)
class Services:
    """The services outside of the function.

    read_password  returns the password in the secret with this ARN
    query          see `Query`
    answer         puts a text to a URL
    """

    read_password: Callable[[str], str]
    query: Query
    answer: Callable[[str, bytes], None]
    sleep: Callable[[float], None] = time.sleep


def handle(event: Event, context: object) -> None:  # noqa: ARG001
    """Handle a request. Lambda calls this function."""
    serve(event, Services(_read_password, _query, _put))


def serve(event: Event, services: Services) -> None:
    """Check the database of a request and answer the request."""
    failure = None
    if event["RequestType"] != "Delete":
        try:
            _check(event["ResourceProperties"], services)
        except Exception as error:  # noqa: BLE001
            failure = _plain(f"{type(error).__name__}: {error}")
            print(failure)
    body = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "Reason": failure or "",
        "PhysicalResourceId": event.get("PhysicalResourceId", event["LogicalResourceId"]),
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    services.answer(event["ResponseURL"], json.dumps(body).encode("ascii"))


def _check(properties: Mapping[str, str], services: Services) -> None:
    address = f"{properties['Host']}:{properties['Port']}"
    place = f"{properties['Database']} on {address}" if "Database" in properties else f"at {address}"
    missing = _ask_patiently(properties, services, place)
    if missing:
        raise NotPrepared(
            f"the database {place} is not prepared for replication. Found: {'; '.join(missing)}. "
            f"{properties['Remedy']}"
        )


def _ask_patiently(properties: Mapping[str, str], services: Services, place: str) -> list[str]:
    password, waited = services.read_password(properties["Secret"]), 0.0
    while True:
        try:
            return services.query(properties, password)
        except OSError as error:
            if waited >= _PATIENCE_SECONDS:
                raise NotPrepared(
                    f"nothing answers for the database {place}: {error}. Let Debezium's security group in. "
                    "See whether the private subnets reach the database. Then deploy again."
                ) from error
            print(f"no connection yet: {error}")
        services.sleep(_PAUSE_SECONDS)
        waited += _PAUSE_SECONDS


def _query(properties: Mapping[str, str], password: str) -> list[str]:
    """Ask the database with the driver that the request names."""
    drivers: Mapping[str, Query] = {
        "pg8000": _query_by_pg8000,
        "pymssql": _query_by_pymssql,
        "pymysql": _query_by_pymysql,
    }
    return drivers[properties.get("Driver", "pg8000")](properties, password)


def _query_by_pymssql(properties: Mapping[str, str], password: str) -> list[str]:
    import pymssql

    try:
        connection = pymssql.connect(
            server=properties["Host"],
            port=properties["Port"],
            user=properties["User"],
            password=password,
            database=properties["Database"],
            login_timeout=10,
            timeout=20,
            tds_version="7.4",
            # Encrypted, without a check of the certificate: the mode "required".
            encryption="require",
        )
    except pymssql.Error as error:
        code, said = _told_by_sql_server(error)
        if code in _NO_SQL_SERVER:
            raise OSError(said) from None
        raise NotPrepared(f"{properties['User']} cannot log in: {said}. {properties['Remedy']}") from None
    try:
        with connection.cursor() as cursor:
            cursor.execute(properties["Query"])
            return [str(row[0]) for row in cursor.fetchall()]
    finally:
        connection.close()


_NO_SQL_SERVER = (20002, 20003, 20006, 20009, 20017)
"""The driver's codes for a server that does not answer, and for one that went away."""


def _told_by_sql_server(error: Exception) -> tuple[int, str]:
    """Return the code and the message, behind which the driver puts its own."""
    found = error.args[0] if error.args else (0, "")
    code, said = found if isinstance(found, tuple) else (0, found)
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    own, _, drivers = text.partition("DB-Lib error message")
    return int(code), " ".join((own or drivers).split()).rstrip(".")


def _query_by_pymysql(properties: Mapping[str, str], password: str) -> list[str]:
    import pymysql

    try:
        connection = pymysql.connect(
            host=properties["Host"],
            port=int(properties["Port"]),
            user=properties["User"],
            password=password,
            ssl=_encrypting() if properties["SslMode"] == "required" else _verifying(),
            connect_timeout=10,
            read_timeout=20,
        )
    except pymysql.err.OperationalError as error:
        if error.args[0] in _NO_CONNECTION:
            raise OSError(error.args[1]) from None
        found = f"{properties['User']} cannot log in: {error.args[1]}"
        raise NotPrepared(f"{found}. {properties['Remedy']}") from None
    with connection, connection.cursor() as cursor:
        cursor.execute(properties["Query"])
        return [str(row[0]) for row in cursor.fetchall()]


_NO_CONNECTION = (2003, 2013)
"""PyMySQL's codes for a server that does not answer, and for one that went away."""


def _verifying() -> ssl.SSLContext:
    """Return a context that accepts only certificates with a root of Amazon RDS, and the server's name."""
    return ssl.create_default_context(cafile=str(Path(__file__).with_name("rds.pem")))


def _encrypting() -> ssl.SSLContext:
    """Return a context that encrypts, and accepts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_TLS_OF_PG8000: Mapping[str, Callable[[], Any]] = {"prefer": lambda: None, "require": lambda: True}
"""By the mode, what pg8000 wants to have."""


def _query_by_pg8000(properties: Mapping[str, str], password: str) -> list[str]:
    from pg8000.exceptions import DatabaseError, InterfaceError
    from pg8000.native import Connection

    try:
        connection = Connection(
            properties["User"],
            host=properties["Host"],
            port=int(properties["Port"]),
            database=properties["Database"],
            password=password,
            # None: with TLS if the server has it.
            ssl_context=_TLS_OF_PG8000.get(properties["SslMode"], _verifying)(),
            timeout=10,
        )
    except DatabaseError as error:
        found = f"{properties['User']} cannot log in: {_message(error)}"
        raise NotPrepared(f"{found}. {properties['Remedy']}") from None
    except InterfaceError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise
    try:
        return [row[0] for row in connection.run(properties["Query"])]
    finally:
        connection.close()


def _message(error: Exception) -> str:
    """Return PostgreSQL's own message, which pg8000 keeps under the letter M."""
    found = error.args[0] if error.args else ""
    return str(found.get("M", found)) if isinstance(found, dict) else str(found)


def _plain(text: str) -> str:
    """Replace control characters, which would make the stack's events unreadable."""
    return "".join(character if " " <= character <= "~" else " " for character in text)[:_MAX_REASON]


def _read_password(secret: str) -> str:
    import boto3
    from botocore.config import Config

    # A VPC without a way to AWS must fail here, and not at the end of the function's time.
    brief = Config(connect_timeout=10, read_timeout=10, retries={"total_max_attempts": 2})
    client = boto3.client("secretsmanager", config=brief)
    content = client.get_secret_value(SecretId=secret)["SecretString"]
    return str(json.loads(content)["password"])


def _put(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": ""}, method="PUT")
    with urllib.request.urlopen(request, timeout=30):
        pass
