"""Handle the requests of CloudFormation and of a schedule to prepare a PostgreSQL database."""

from __future__ import annotations

from stacks.functions.bootstrap.answers import DELETE_SECONDS, Context, Event, answer, with_present
from stacks.functions.bootstrap.data_api import patiently
from stacks.functions.bootstrap.preparation import Preparation, give_up, give_up_role, prepare, refresh
from stacks.functions.bootstrap.requests import Services, aws_services, database_of
from stacks.functions.bootstrap.slot_limit import limit_slots

_REFRESH_SECONDS = 20.0
_PARAMETER_SECONDS = 120.0


def handle(event: Event, context: Context) -> None:
    """Handle a request. Lambda calls this function."""
    serve(event, context, aws_services())


def serve(event: Event, context: Context, services: Services) -> None:
    """Handle a request and answer CloudFormation. The schedule's requests, without RequestType, may raise."""
    if "RequestType" not in event:
        _refresh(event, services)
        return
    answer(event, context, services.answer, lambda seconds: _perform(event, seconds, services))


def _perform(event: Event, seconds: float, services: Services) -> str:
    properties = event["ResourceProperties"]
    preparation = Preparation.from_json(properties["Preparation"])
    database = database_of(properties, services)
    if event["RequestType"] == "Delete":
        patiently(lambda: database.run("SELECT 1"), DELETE_SECONDS, sleep=services.sleep)
        give_up(database, preparation, services.sleep)
        return ""
    remarks = with_present(
        lambda: services.read_password(properties["ReplicationSecret"]),
        lambda password: patiently(
            lambda: prepare(database, preparation, password), seconds=seconds, sleep=services.sleep
        ),
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
    database = database_of(event, services)
    tables = patiently(lambda: refresh(database, preparation), _REFRESH_SECONDS, sleep=services.sleep)
    if tables:
        print(f"published from now on: {', '.join(tables)}")
