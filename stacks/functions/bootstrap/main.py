"""Handle the requests of CloudFormation and of a schedule to prepare a database.

Without an answer, CloudFormation waits for an hour, so the function answers in every case.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import boto3

from stacks.functions.bootstrap.data_api import DataApi, RdsData, patiently
from stacks.functions.bootstrap.preparation import Preparation, give_up, give_up_role, prepare, refresh
from stacks.functions.bootstrap.slot_limit import Rds, limit_slots

Event = Mapping[str, Any]

_RESERVE_SECONDS = 30.0
"""The part of the function's time that is kept for the answer."""
_DELETE_SECONDS = 120.0
_REFRESH_SECONDS = 20.0
_PARAMETER_SECONDS = 120.0
_MAX_TEXT = 1000
"""Characters of a reason or a remark. CloudFormation accepts 4,096 bytes in all."""


class Context(Protocol):
    """The part of Lambda's context that this module uses."""

    log_stream_name: str

    def get_remaining_time_in_millis(self) -> int: ...


@dataclass(frozen=True)
class Services:
    """The services outside of the function.

    read_password  returns the password in the secret with this ARN
    answer         puts a text to a URL
    """

    rds_data: RdsData
    rds: Rds
    read_password: Callable[[str], str]
    answer: Callable[[str, bytes], None]
    sleep: Callable[[float], None] = time.sleep


def handle(event: Event, context: Context) -> None:
    """Handle a request. Lambda calls this function."""
    serve(event, context, _services())


def serve(event: Event, context: Context, services: Services) -> None:
    """Handle a request and answer CloudFormation. The schedule's requests, without RequestType, may raise."""
    if "RequestType" not in event:
        _refresh(event, services)
        return
    try:
        remarks, failure = _perform(event, context, services), None
    except Exception as error:  # noqa: BLE001
        remarks, failure = "", _plain(f"{type(error).__name__}: {error}")
        print(failure)
    if failure is not None and event["RequestType"] == "Delete":
        print("the database cannot be reached, so nothing is left to remove")
        failure = None
    _answer(event, context, services, remarks, failure)


def _perform(event: Event, context: Context, services: Services) -> str:
    properties = event["ResourceProperties"]
    preparation = Preparation.from_json(properties["Preparation"])
    database = _database(properties, services)
    if event["RequestType"] == "Delete":
        patiently(lambda: database.run("SELECT 1"), _DELETE_SECONDS, sleep=services.sleep)
        give_up(database, preparation, services.sleep)
        return ""
    password = services.read_password(properties["ReplicationSecret"])
    seconds = context.get_remaining_time_in_millis() / 1000 - _RESERVE_SECONDS
    remarks = patiently(
        lambda: prepare(database, preparation, password), seconds=seconds, sleep=services.sleep
    )
    unlimited = patiently(
        lambda: limit_slots(services.rds, properties["ParameterGroup"], properties["SlotMegabytes"]),
        seconds=_PARAMETER_SECONDS,
        sleep=services.sleep,
    )
    remarks += [] if unlimited is None else [unlimited]
    before = event.get("OldResourceProperties", properties)["Preparation"]
    former = Preparation.from_json(before)
    if former.role != preparation.role:
        give_up_role(database, former)
    return "; ".join(remarks) or "every pattern has its tables"


def _refresh(event: Event, services: Services) -> None:
    preparation = Preparation.from_json(event["Preparation"])
    database = _database(event, services)
    tables = patiently(lambda: refresh(database, preparation), _REFRESH_SECONDS, sleep=services.sleep)
    if tables:
        print(f"published from now on: {', '.join(tables)}")


def _database(properties: Mapping[str, str], services: Services) -> DataApi:
    return DataApi(
        services.rds_data, properties["Cluster"], properties["AdminSecret"], properties["Database"]
    )


def _answer(event: Event, context: Context, services: Services, remarks: str, failure: str | None) -> None:
    properties = event["ResourceProperties"]
    body = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "Reason": failure or f"see the log stream {context.log_stream_name}",
        # With another cluster or database, the id changes, and CloudFormation deletes the former resource.
        "PhysicalResourceId": f"{properties['Cluster']}/{properties['Database']}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Remarks": _plain(remarks)},
    }
    if event["RequestType"] == "Delete":
        body["PhysicalResourceId"] = event["PhysicalResourceId"]
    services.answer(event["ResponseURL"], json.dumps(body).encode("ascii"))


def _plain(text: str) -> str:
    """Replace control characters, which would make the stack's events unreadable."""
    return "".join(character if " " <= character <= "~" else " " for character in text)[:_MAX_TEXT]


def _services() -> Services:
    secrets_manager = boto3.client("secretsmanager")

    def read_password(secret: str) -> str:
        content = secrets_manager.get_secret_value(SecretId=secret)["SecretString"]
        return str(json.loads(content)["password"])

    return Services(boto3.client("rds-data"), boto3.client("rds"), read_password, _put)


def _put(url: str, body: bytes) -> None:
    """Put an answer to CloudFormation's presigned URL, which is signed without a content type."""
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request, timeout=30):
        pass
