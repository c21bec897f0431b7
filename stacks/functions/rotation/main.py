"""Rotate the password of Debezium's user: in the secret, in the database, and in the connector.

Secrets Manager calls the function with the four steps of a rotation. Each step can be repeated. A schedule
calls it without a step. Then it looks whether the database accepts the secret's password and whether the
connector has read it, and mends what is not so: an interrupted rotation, a password that somebody changed on
one side only, a restart that was refused.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from stacks.functions.rotation.connector import Connector, NotNow, RestartFailed, kafka_connect_client
from stacks.functions.rotation.databases import (
    Address,
    LoginRefused,
    NotReached,
    Open,
    change_password,
    lets_in,
    open_session,
)
from stacks.functions.rotation.secret import CURRENT, PENDING, READ, RotatingSecret, Version

Result = TypeVar("Result")

TARGET = "TARGET"
"""The environment variable with the `Target` as JSON."""

AGE = "PasswordAge"
"""The metric of the days since the password was made."""

UNREAD = "UnreadPassword"
"""The metric that is 1 while the connector may still have a former password, or nobody can log in."""

_ROTATION = timedelta(minutes=15)
"""A rotation that is younger is left alone. Secrets Manager calls all its steps within seconds."""

_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 5.0
"""For a server that fails over, and for the administrator's own rotation, which takes seconds."""
_RESTART_SECONDS = 300.0
_QUICK = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 3})


class NotThisRotation(Exception):
    """The version of a step is not the pending one: the step belongs to a former rotation."""


class NotLetIn(Exception):
    """The database does not accept the new password."""


@dataclass(frozen=True)
class Target:
    """The password that the function rotates, and where it is in use. It holds no secret.

    namespace, lake, source  of the metrics
    secret       ARN of the secret of Debezium's user
    statement    that changes the user's password, with PASSWORD in its place
    admin        who runs the statement, and the ARN of the secret with the administrator's password
    connector    name of the connector that reads the secret
    """

    namespace: str
    lake: str
    source: str
    secret: str
    address: Address
    user: str
    statement: str
    admin: str
    admin_secret: str
    connector: str

    @classmethod
    def from_json(cls, text: str) -> Target:
        content = json.loads(text)
        return cls(**{**content, "address": Address(**content["address"])})


@dataclass(frozen=True)
class Outside:
    """The services outside of the function.

    secrets, kafka_connect  boto3's clients
    report       takes the metrics
    """

    secrets: Any
    kafka_connect: Any
    open: Open = open_session
    report: Callable[[Mapping[str, Any]], None] = lambda line: print(json.dumps(line), flush=True)
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def handle(event: Mapping[str, Any], context: object) -> None:  # noqa: ARG001
    """Handle a step of a rotation, or a call of the schedule. Lambda calls this function."""
    outside = Outside(boto3.client("secretsmanager", config=_QUICK), kafka_connect_client())
    serve(event, Target.from_json(os.environ[TARGET]), outside)


def serve(event: Mapping[str, Any], target: Target, outside: Outside) -> None:
    """Do a step of a rotation, or look after the password. Raises what keeps it from that."""
    rotation = Rotation(target, outside)
    if "Step" not in event:
        rotation.look_after()
        return
    if event["SecretId"] != target.secret:
        raise NotThisRotation(f"the function does not rotate {event['SecretId']}")
    steps = {
        "createSecret": rotation.create,
        "setSecret": rotation.set,
        "testSecret": rotation.test,
        "finishSecret": rotation.finish,
    }
    steps[event["Step"]](event["ClientRequestToken"])


class Rotation:
    """The steps of a rotation, and what the schedule does."""

    def __init__(self, target: Target, outside: Outside) -> None:
        self._target, self._outside = target, outside
        self._secret = RotatingSecret(outside.secrets, target.secret)
        self._connector = Connector(outside.kafka_connect, target.connector)

    def create(self, token: str) -> None:
        """Make another password, unless an earlier call did."""
        labels = self._secret.labels()
        current, waiting = labels[CURRENT], labels.get(PENDING)
        if token == current:
            return
        if waiting != token and (waiting not in (None, current) or token in labels.values()):
            raise NotThisRotation(f"version {token} cannot be made: version {waiting} is pending")
        if self._secret.read(token) is None:
            self._secret.create(token, self._secret.read_current())

    def set(self, token: str) -> None:
        """Make the database accept the new password."""
        if self._is_pending(token):
            self._make_valid(self._made(token))

    def test(self, token: str) -> None:
        """Log in with the new password. Raises NotLetIn."""
        if self._is_pending(token) and not self._lets_in(self._made(token)):
            raise NotLetIn(f"the database does not let {self._target.user} in with the new password")

    def finish(self, token: str) -> None:
        """Make the new password the current one, and let the connector read it.

        A connector that cannot be restarted now is no failure of the rotation: the schedule tries again.
        """
        is_pending, version = self._is_pending(token), self._made(token)
        if is_pending:
            self._secret.move(CURRENT, self._secret.labels(), token)
        # A deployment may have set the former password after the test.
        self._make_valid(version)
        self._let_connector_read()

    def look_after(self) -> None:
        """Mend what a rotation or a person left undone, and report."""
        current = self._valid()
        is_unread = current is None or not self._let_connector_read()
        age = self._outside.now() - (current or self._secret.read_current()).created
        self._report(age, is_unread=is_unread)

    def _is_pending(self, token: str) -> bool:
        """Tell whether the rotation still has to promote the version. Raises NotThisRotation.

        A late repetition of a former rotation must not bring its password back.
        """
        labels = self._secret.labels()
        if token not in (labels[CURRENT], labels.get(PENDING)):
            raise NotThisRotation(f"version {token} is not pending")
        return token != labels[CURRENT]

    def _made(self, token: str) -> Version:
        version = self._secret.read(token)
        if version is None:
            raise NotThisRotation(f"version {token} has not been made yet")
        return version

    def _valid(self) -> Version | None:
        """Return the current version, which the database accepts. None: a rotation is between two steps."""
        labels = self._secret.labels()
        current = self._secret.read(labels[CURRENT])
        assert current is not None, "the current version has content"
        if self._lets_in(current):
            return current
        waiting = labels.get(PENDING, current.id)
        pending = None if waiting == current.id else self._secret.read(waiting)
        if pending is not None and self._outside.now() - pending.created < _ROTATION:
            print("a rotation is under way")
            return None
        if pending is not None and self._lets_in(pending):
            print("a rotation was interrupted: the version that the database accepts becomes the current one")
            self._secret.move(CURRENT, labels, pending.id)
            return pending
        if self._secret.labels() != labels:
            print("a rotation has begun")
            return None
        print("the database does not accept the secret's password: it gets it again")
        self._make_valid(current)
        return current

    def _make_valid(self, version: Version) -> None:
        """Change the user's password, unless the database accepts it already. Raises NotLetIn."""
        if self._lets_in(version):
            return
        self._patiently(lambda: self._change(version))
        if not self._lets_in(version):
            raise NotLetIn(f"the database does not let {self._target.user} in with the new password")

    def _change(self, version: Version) -> None:
        target = self._target
        # Each time, because the administrator's password rotates, too.
        secret = self._outside.secrets.get_secret_value(SecretId=target.admin_secret)["SecretString"]
        session = self._outside.open(target.address, target.admin, json.loads(secret)["password"])
        try:
            change_password(session, target.address.engine, target.statement, version.password)
        finally:
            session.close()

    def _lets_in(self, version: Version) -> bool:
        target = self._target
        return self._patiently(
            lambda: lets_in(self._outside.open, target.address, target.user, version.password)
        )

    def _let_connector_read(self) -> bool:
        """Restart the connector unless it has read the current version. Return whether it has."""
        try:
            self._restart_if_unread()
        except (NotNow, RestartFailed, ClientError, BotoCoreError) as error:
            print(f"the connector has not read its new password yet: {error}")
            return False
        return True

    def _restart_if_unread(self) -> None:
        labels = self._secret.labels()
        current = labels[CURRENT]
        if labels.get(READ) == current:
            return
        arn = self._connector.find()
        if arn is None:
            # A connector that is created later reads the current version.
            self._secret.move(READ, labels, current)
            return
        operation = self._connector.restart(arn)
        # At once: a function that ends here must not lead to one restart after the other.
        self._secret.move(READ, labels, current)
        try:
            self._wait_for(operation)
        except RestartFailed:
            self._secret.remove(READ, current)
            raise

    def _wait_for(self, operation: str) -> None:
        for _ in range(int(_RESTART_SECONDS / _PAUSE_SECONDS)):
            if self._connector.is_restarted(operation):
                print(f"the connector {self._target.connector} was restarted")
                return
            self._outside.sleep(_PAUSE_SECONDS)
        print(f"the connector {self._target.connector} is still being restarted")

    def _patiently(self, action: Callable[[], Result]) -> Result:
        """Return the result of the action. Retry it while the server or the administrator is not ready."""
        attempts = int(_PATIENCE_SECONDS / _PAUSE_SECONDS)
        while True:
            try:
                return action()
            except (NotReached, LoginRefused) as error:
                attempts -= 1
                if attempts <= 0:
                    raise
                print(f"not ready yet: {error}")
                self._outside.sleep(_PAUSE_SECONDS)

    def _report(self, age: timedelta, *, is_unread: bool) -> None:
        """Report a line of a log from which CloudWatch takes the metrics (embedded metric format)."""
        target = self._target
        directive = {
            "Namespace": target.namespace,
            "Dimensions": [["Lake", "Source"]],
            "Metrics": [{"Name": AGE, "Unit": "None"}, {"Name": UNREAD, "Unit": "Count"}],
        }
        self._outside.report(
            {
                "_aws": {
                    "Timestamp": int(self._outside.now().timestamp() * 1000),
                    "CloudWatchMetrics": [directive],
                },
                "Lake": target.lake,
                "Source": target.source,
                AGE: age / timedelta(days=1),
                UNREAD: int(is_unread),
            }
        )
