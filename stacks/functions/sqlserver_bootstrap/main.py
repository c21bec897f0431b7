"""Handle the requests of CloudFormation and of a schedule to prepare a SQL Server database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from connectors.engines.sqlserver.session import open_session
from stacks.functions.bootstrap.answers import (
    DELETE_SECONDS,
    Context,
    Event,
    Put,
    answer,
    put,
    seconds_left,
    with_present,
)
from stacks.functions.sqlserver_bootstrap.preparation import (
    Administrator,
    Recorded,
    SqlServerPreparation,
    give_up,
    give_up_user,
    look_after,
    prepare,
)
from stacks.functions.sqlserver_bootstrap.server import Deadline, NotReady, Open, Patience, Server

AGE = "CaptureAge"
"""The metric of the seconds since CDC has recorded anything. It does so every five minutes at least."""

UNRECORDED = "UnrecordedTables"
"""The metric of the tables that CDC does not record as they are now."""

_LOOK_SECONDS = 20.0
_DENIED = {"AccessDenied", "AccessDeniedException"}
_DENIED_SECONDS = 120.0
"""A new role's policy takes effect within seconds, but not at once."""
_QUICK = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 3})
"""Without it, a service that does not answer could use up the time for a request."""


@dataclass(frozen=True)
class Outside:
    """The services outside of the function.

    send           sends metrics to CloudWatch, in a namespace
    read_password  returns the password in the secret with this ARN
    """

    send: Callable[[str, Sequence[Mapping[str, Any]]], None]
    read_password: Callable[[str], str]
    answer: Put = put
    open: Open = open_session
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class _Request:
    """A request, with the one deadline for all its steps."""

    properties: Mapping[str, str]
    outside: Outside
    deadline: Deadline

    @property
    def patience(self) -> Patience:
        return Patience(self.outside.sleep, self.deadline)

    def administrator(self) -> Administrator:
        """Return the administrator, with the password as it is now: it rotates. Raises NotReady."""
        server = Server.of(self.properties, self.outside.open, self.deadline)
        return Administrator(server, self.properties["AdminUser"], self.password("AdminSecret"))

    def reach(self) -> None:
        """Log in as the administrator. Raises NotReady and Refused."""
        with self.administrator().session():
            pass

    def password(self, secret: str) -> str:
        """Return the password in the secret that a property names. Raises NotReady."""
        try:
            return self.outside.read_password(self.properties[secret])
        except ClientError as error:
            if error.response["Error"].get("Code") not in _DENIED:
                raise
            raise NotReady(str(error), _DENIED_SECONDS) from None


def handle(event: Event, context: Context) -> None:
    """Handle a request. Lambda calls this function."""
    serve(event, context, Outside(_send, _password_reader()))


def serve(event: Event, context: Context, outside: Outside) -> None:
    """Handle a request and answer CloudFormation. The schedule's requests, without RequestType, may raise."""
    if "RequestType" in event:
        answer(event, context, outside.answer, lambda seconds: _perform(event, seconds, outside))
    else:
        _look_after(event, seconds_left(context), outside)


def _perform(event: Event, seconds: float, outside: Outside) -> str:
    request = _Request(event["ResourceProperties"], outside, Deadline.after(seconds, outside.clock))
    preparation = SqlServerPreparation.from_json(request.properties["Preparation"])
    patience = request.patience
    if event["RequestType"] == "Delete":
        patience.until_ready(request.reach, DELETE_SECONDS)
        give_up(request.administrator, preparation, patience)
        return ""
    remarks = patience.until_ready(
        lambda: with_present(
            lambda: request.password("ReplicationSecret"),
            lambda password: prepare(request.administrator(), preparation, password),
        )
    )
    before = event.get("OldResourceProperties", request.properties)["Preparation"]
    former = SqlServerPreparation.from_json(before)
    if former.user != preparation.user:
        give_up_user(request.administrator, former, patience)
    return "; ".join(remarks) or "a table that is created later is recorded within a minute"


def _look_after(event: Event, seconds: float, outside: Outside) -> None:
    request = _Request(event, outside, Deadline.after(seconds, outside.clock))
    preparation = SqlServerPreparation.from_json(event["Preparation"])
    recorded = request.patience.until_ready(
        lambda: look_after(request.administrator(), preparation), _LOOK_SECONDS
    )
    outside.send(event["Namespace"], _metrics(event, recorded))


def _metrics(event: Event, recorded: Recorded) -> list[Mapping[str, Any]]:
    dimensions = [{"Name": name, "Value": event[name]} for name in ("Lake", "Source")]
    values = {UNRECORDED: ("Count", len(recorded.unrecorded)), AGE: ("Seconds", recorded.age)}
    return [
        {"MetricName": name, "Dimensions": dimensions, "Unit": unit, "Value": float(value)}
        for name, (unit, value) in values.items()
        if value is not None
    ]


def _password_reader() -> Callable[[str], str]:
    secrets_manager = boto3.client("secretsmanager", config=_QUICK)

    def read_password(secret: str) -> str:
        content = secrets_manager.get_secret_value(SecretId=secret)["SecretString"]
        return str(json.loads(content)["password"])

    return read_password


def _send(namespace: str, metrics: Sequence[Any]) -> None:
    boto3.client("cloudwatch").put_metric_data(Namespace=namespace, MetricData=list(metrics))
