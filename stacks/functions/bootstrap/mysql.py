"""Prepare a source's Aurora MySQL, and remove what was prepared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from stacks.functions.bootstrap.answers import DELETE_SECONDS, Context, Event, answer, with_present
from stacks.functions.bootstrap.data_api import DataApi, StatementFailed, patiently
from stacks.functions.bootstrap.requests import Services, aws_services, database_of


@dataclass(frozen=True)
class MySqlPreparation:
    """The SQL of `connectors.engines.binlog.preparation` for one source.

    user          of Debezium, quoted, with its host
    setup         statements that may run any number of times
    removal       statements to run one by one; the last one removes the user
    binlog_hours  how long the server keeps its binary log
    """

    user: str
    setup: tuple[str, ...]
    removal: tuple[str, ...]
    binlog_hours: int

    @classmethod
    def from_json(cls, text: str) -> MySqlPreparation:
        content: dict[str, Any] = json.loads(text)
        return cls(**content | {name: tuple(content[name]) for name in ("setup", "removal")})

    def to_json(self) -> str:
        """Return ASCII, because CloudFormation has lost other characters before."""
        return json.dumps(asdict(self), ensure_ascii=True)


def handle(event: Event, context: Context) -> None:
    """Handle a request. Lambda calls this function."""
    serve(event, context, aws_services())


def serve(event: Event, context: Context, services: Services) -> None:
    """Handle a request and answer CloudFormation."""
    answer(event, context, services.answer, lambda seconds: _perform(event, seconds, services))


def _perform(event: Event, seconds: float, services: Services) -> str:
    properties = event["ResourceProperties"]
    preparation = MySqlPreparation.from_json(properties["Preparation"])
    database = database_of(properties, services)
    if event["RequestType"] == "Delete":
        patiently(lambda: database.run("SELECT 1"), DELETE_SECONDS, sleep=services.sleep)
        _remove(database, preparation.removal, services.sleep)
        return ""
    with_present(
        lambda: services.read_password(properties["ReplicationSecret"]),
        lambda password: patiently(
            lambda: prepare(database, preparation, password), seconds=seconds, sleep=services.sleep
        ),
    )
    former = _former(event)
    if former is not None and former.user != preparation.user:
        _remove(database, former.removal[-1:], services.sleep)
    return f"the server keeps its binary log for {preparation.binlog_hours} hours"


def prepare(database: DataApi, preparation: MySqlPreparation, password: str) -> None:
    """Prepare everything, also repeatedly. Raises StatementFailed.

    MySQL commits each of these statements by itself. The server's logs show the password as <secret>.
    """
    if re.fullmatch(r"[A-Za-z0-9]+", password) is None:
        raise StatementFailed("the password in the secret has characters other than letters and digits")
    for statement in preparation.setup:
        database.run(statement)
    # Amazon's procedure: MySQL's own setting, binlog_expire_logs_seconds, has no effect on Aurora.
    database.run(f"CALL mysql.rds_set_configuration('binlog retention hours', {preparation.binlog_hours})")
    database.run(f"ALTER USER {preparation.user} IDENTIFIED BY '{password}' ACCOUNT UNLOCK")


def _remove(database: DataApi, statements: tuple[str, ...], sleep: Callable[[float], None]) -> None:
    """Run the statements as far as possible. All tables of the source stay."""
    for statement in statements:
        try:
            patiently(partial(database.run, statement), seconds=30, sleep=sleep)
        except StatementFailed as error:
            print(f"left as it is: {error}")


def _former(event: Event) -> MySqlPreparation | None:
    before: Mapping[str, str] | None = event.get("OldResourceProperties")
    return None if before is None else MySqlPreparation.from_json(before["Preparation"])
