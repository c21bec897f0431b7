"""A rotation as AWS runs it: Secrets Manager (moto), its four calls, and MSK Connect."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws

from stacks.functions.rotation.databases import Address, LoginRefused, Open
from stacks.functions.rotation.main import Outside, Target, serve
from stacks.functions.rotation.secret import CURRENT, READ

STEPS = ("createSecret", "setSecret", "testSecret", "finishSecret")
USER, ADMIN = "tributary_shop__web", "lakeadmin"
FIRST, ADMIN_PASSWORD = "TheFirst0Password", "Admin0Password"
CONNECTOR = "tributary-shop-web-debezium"
CONNECTOR_ARN = f"arn:aws:kafkaconnect:us-east-1:111122223333:connector/{CONNECTOR}/0a1b-1"
STATEMENT = f"ALTER ROLE {USER} PASSWORD '<password>'"


class Killed(BaseException):
    """The function ends here, as Lambda ends it."""


@dataclass
class Interruption:
    """Ends the function at the call with this number to anything outside, before it or right after it."""

    at: int | None = None
    is_after: bool = False
    calls: int = 0

    def around(self, call: Callable[[], Any]) -> Any:
        self.calls += 1
        ends = self.calls == self.at
        if ends and not self.is_after:
            raise Killed
        answer = call()
        if ends:
            raise Killed
        return answer


@dataclass
class Interrupted:
    """A client whose calls can end the function."""

    client: Any
    interruption: Interruption

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)
        return lambda **request: self.interruption.around(lambda: method(**request))


@dataclass
class KafkaConnect:
    """MSK Connect with one connector. `state` None: there is none.

    read_secret  is called whenever the connector's task starts
    outcomes     of the next restarts; then they are complete at once
    refusals     are raised by the next requests for a restart
    """

    read_secret: Callable[[], str]
    state: str | None = "RUNNING"
    password: str = ""
    restarts: int = 0
    outcomes: list[str] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)

    def list_connectors(self, **request: Any) -> Mapping[str, Any]:
        assert request == {"connectorNamePrefix": CONNECTOR}
        other = {
            "connectorName": f"{CONNECTOR}-of-another-lake",
            "connectorState": "RUNNING",
            "connectorArn": "another",
        }
        found = {"connectorName": CONNECTOR, "connectorState": self.state, "connectorArn": CONNECTOR_ARN}
        return {"connectors": [other, *([found] if self.state is not None else [])]}

    def restart_connector(self, **request: Any) -> Mapping[str, Any]:
        assert request == {"connectorArn": CONNECTOR_ARN}
        if self.refusals:
            raise self.refusals.pop(0)
        if self.state != "RUNNING":
            raise refused("RestartConnector", "BadRequestException", f"The connector is {self.state}")
        self.restarts += 1
        self.password = self.read_secret()
        return {"connectorArn": CONNECTOR_ARN, "connectorOperationArn": "an-operation"}

    def describe_connector_operation(self, **request: Any) -> Mapping[str, Any]:
        assert request == {"connectorOperationArn": "an-operation"}
        outcome = self.outcomes.pop(0) if self.outcomes else "RESTART_COMPLETE"
        return {"connectorOperationState": outcome, "errorInfo": {"message": "a reason"}}


def refused(operation: str, code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


@dataclass
class Passwords:
    """A database that knows only its users' passwords, for rotations by the thousand."""

    known: dict[str, str] = field(default_factory=lambda: {USER: FIRST, ADMIN: ADMIN_PASSWORD})
    opened: int = 0
    statements: list[str] = field(default_factory=list)

    def open(self, address: Address, user: str, password: str) -> Any:
        assert address.engine == "mysql", "this one gets passwords as they are"
        if self.known.get(user) != password:
            raise LoginRefused(f"no {user}")
        self.opened += 1
        return _Session(self, user)


@dataclass
class _Session:
    database: Passwords
    user: str

    def run(self, statement: str) -> None:
        assert self.user == ADMIN
        before, _, after = STATEMENT.partition("<password>")
        assert statement.startswith(before)
        self.database.statements.append(statement)
        self.database.known[USER] = statement.removeprefix(before).removesuffix(after)

    def close(self) -> None:
        self.database.opened -= 1


@dataclass
class Rotated:
    """A secret that rotates, with all that is around it.

    lines         the metrics
    during_sleep  happens while the function waits
    """

    secrets: Any
    secret: str
    admin_secret: str
    address: Address
    open: Open
    statement: str = STATEMENT
    user: str = USER
    admin: str = ADMIN
    interruption: Interruption = field(default_factory=Interruption)
    lines: list[Mapping[str, Any]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    later: timedelta = timedelta(0)
    during_sleep: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.connect = KafkaConnect(lambda: self.password(CURRENT))
        self.connect.password = self.password(CURRENT)

    def call(self, event: Mapping[str, str]) -> None:
        """Call the function. Raises what ends it."""

        def open_(address: Address, user: str, password: str) -> Any:
            return self.interruption.around(lambda: self.open(address, user, password))

        outside = Outside(
            Interrupted(self.secrets, self.interruption),
            Interrupted(self.connect, self.interruption),
            open_,
            self.lines.append,
            self._sleep,
            lambda: datetime.now(UTC) + self.later,
        )
        serve(event, self.target, outside)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.during_sleep()

    def step(self, step: str, token: str) -> None:
        self.call({"Step": step, "SecretId": self.secret, "ClientRequestToken": token})

    def rotate(self, token: str | None = None) -> str:
        """Let Secrets Manager rotate the secret, or repeat a rotation, and return the version."""
        token = token or str(uuid.uuid4())
        for step in STEPS:
            self.step(step, token)
        return token

    def look_after(self, later: timedelta = timedelta(0)) -> None:
        """Let the schedule call the function, so much later than now."""
        self.later = later
        self.call({})

    @property
    def target(self) -> Target:
        return Target(
            "Tributary", "shop", "web", self.secret, self.address, self.user, self.statement,
            self.admin, self.admin_secret, CONNECTOR,
        )  # fmt: skip

    def labels(self) -> dict[str, str]:
        stages = self.secrets.describe_secret(SecretId=self.secret)["VersionIdsToStages"]
        return {label: version for version, labels in stages.items() for label in labels}

    def password(self, label: str) -> str:
        # By its id: by a label, moto does not find a version that was put while another one was pending.
        found = self.secrets.get_secret_value(SecretId=self.secret, VersionId=self.labels()[label])
        content = json.loads(found["SecretString"])
        assert content["username"] == self.user
        return str(content["password"])

    def put(self, password: str) -> None:
        """Put another password into the secret, as a person may."""
        self.secrets.put_secret_value(
            SecretId=self.secret, SecretString=json.dumps({"username": self.user, "password": password})
        )

    @property
    def is_read(self) -> bool:
        labels = self.labels()
        return labels.get(READ) == labels[CURRENT]


@contextmanager
def rotated(
    address: Address,
    open_: Open,
    *,
    statement: str = STATEMENT,
    user: str = USER,
    admin: str = ADMIN,
    admin_password: str = ADMIN_PASSWORD,
) -> Iterator[Rotated]:
    """Yield a secret in moto, whose first password the database already has."""
    with mock_aws():
        secrets = boto3.client("secretsmanager", region_name="us-east-1")
        made = [
            secrets.create_secret(Name=name, SecretString=json.dumps(content))["ARN"]
            for name, content in (
                ("tributary/shop/web/replication", {"username": user, "password": FIRST}),
                ("admin", {"username": admin, "password": admin_password}),
            )
        ]
        yield Rotated(secrets, made[0], made[1], address, open_, statement, user, admin)
