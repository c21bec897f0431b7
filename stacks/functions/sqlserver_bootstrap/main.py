"""Handle the requests of CloudFormation and of a schedule to prepare a SQL Server database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import boto3

from connectors.engines.sqlserver.session import open_session
from stacks.functions.bootstrap.requests import (
    DELETE_SECONDS,
    Context,
    Event,
    Services,
    answer,
    aws_services,
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
from stacks.functions.sqlserver_bootstrap.server import Open, Patience, Server

AGE = "CaptureAge"
"""The metric of the seconds since CDC has recorded anything. It does so every five minutes at least."""

UNRECORDED = "UnrecordedTables"
"""The metric of the tables that CDC does not record as they are now."""

_LOOK_SECONDS = 20.0


@dataclass(frozen=True)
class Outside:
    """What this function uses besides the services of `stacks.functions.bootstrap`.

    send  sends metrics to CloudWatch, in a namespace
    """

    send: Callable[[str, Sequence[Mapping[str, Any]]], None]
    open: Open = open_session
    clock: Callable[[], float] = time.monotonic


def handle(event: Event, context: Context) -> None:
    """Handle a request. Lambda calls this function."""
    serve(event, context, aws_services(), Outside(_send))


def serve(event: Event, context: Context, services: Services, outside: Outside) -> None:
    """Handle a request and answer CloudFormation. The schedule's requests, without RequestType, may raise."""
    if "RequestType" not in event:
        _look_after(event, services, outside)
        return
    answer(event, context, services, partial(_perform, outside=outside))


def _perform(event: Event, seconds: float, services: Services, outside: Outside) -> str:
    properties = event["ResourceProperties"]
    preparation = SqlServerPreparation.from_json(properties["Preparation"])
    patience = Patience(services.sleep, outside.clock)
    if event["RequestType"] == "Delete":
        admin = patience.until_ready(lambda: _reached(properties, services, outside.open), DELETE_SECONDS)
        give_up(admin, preparation, patience)
        return ""
    password = services.read_password(properties["ReplicationSecret"])
    remarks = patience.until_ready(
        lambda: prepare(_administrator(properties, services, outside.open), preparation, password), seconds
    )
    before = event.get("OldResourceProperties", properties)["Preparation"]
    former = SqlServerPreparation.from_json(before)
    if former.user != preparation.user:
        give_up_user(_administrator(properties, services, outside.open), former, patience)
    return "; ".join(remarks) or "a table that is created later is recorded within a minute"


def _look_after(event: Event, services: Services, outside: Outside) -> None:
    preparation = SqlServerPreparation.from_json(event["Preparation"])
    recorded = Patience(services.sleep, outside.clock).until_ready(
        lambda: look_after(_administrator(event, services, outside.open), preparation), _LOOK_SECONDS
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


def _administrator(properties: Mapping[str, str], services: Services, open_: Open) -> Administrator:
    """Return the administrator, with the password as it is now: it rotates."""
    password = services.read_password(properties["AdminSecret"])
    return Administrator(Server.of(properties, open_), properties["AdminUser"], password)


def _reached(properties: Mapping[str, str], services: Services, open_: Open) -> Administrator:
    """Return the administrator after a login. Raises NotReady and Refused."""
    admin = _administrator(properties, services, open_)
    with admin.session():
        return admin


def _send(namespace: str, metrics: Sequence[Any]) -> None:
    boto3.client("cloudwatch").put_metric_data(Namespace=namespace, MetricData=list(metrics))
