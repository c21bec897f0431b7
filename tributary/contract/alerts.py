"""`[alerts]`: what whoever follows the lake on this machine tells a person, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from tributary.contract.entries import (
    Duration,
    Entry,
    EnvironmentVariable,
    Host,
    Names,
    Port,
    Problem,
    matching,
)

MailAddress = Annotated[str, matching(r"[^@\s<>,;]+@[^@\s<>,;]+", "an e-mail address")]


class Smtp(Entry):
    """`[alerts.smtp]`: a mail server that takes the alerts.

    security      "starttls" and "tls" verify the server's certificate
    password_env  the environment variable with the password of `user`
    """

    host: Host
    port: Port = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    sender: MailAddress
    recipients: Names
    user: str | None = None
    password_env: EnvironmentVariable | None = None


class Alerts(Entry):
    """The rules, and where to send an alert. A rule that is None does not count.

    freshness    how old the oldest change may be that a table has not applied
    lag          how many events a table may be behind its topic
    quarantine   how many events of a table may be in quarantine
    verified     how long ago a table may have been found equal to its source by the verification
    unread_log_gb  how many gigabytes of a database's log Debezium may have left to read
    blocked      whether to tell of a table, a connector or a server that waits for a person
    webhook_env  the environment variable with the URL of a webhook that takes Slack's messages
    """

    freshness: Duration | None = None
    lag: Annotated[int, Field(ge=0)] | None = None
    quarantine: Annotated[int, Field(ge=0)] | None = None
    verified: Duration | None = None
    unread_log_gb: Annotated[float, Field(gt=0, le=10_000)] | None = None
    blocked: bool = True
    webhook_env: EnvironmentVariable | None = None
    smtp: Smtp | None = None

    def problems(self) -> Iterator[Problem]:
        """Yield what no single entry shows."""
        if self.webhook_env is None and self.smtp is None:
            yield Problem("[alerts]", "alerts that reach nobody", "no place", "webhook_env or [alerts.smtp]")
        limits = (self.freshness, self.lag, self.quarantine, self.verified, self.unread_log_gb)
        if not self.blocked and all(limit is None for limit in limits):
            expected = "freshness, lag, quarantine, verified, unread_log_gb or blocked = true"
            yield Problem("[alerts]", "alerts without a rule", "blocked = false alone", expected)
        if self.smtp is not None and (self.smtp.user is None) != (self.smtp.password_env is None):
            yield Problem(
                "[alerts.smtp]",
                "half of a login",
                "user alone" if self.smtp.password_env is None else "password_env alone",
                "user and password_env, or neither of them",
            )
        if self.smtp is not None and self.smtp.user is not None and self.smtp.security == "none":
            expected = 'security = "starttls" or "tls", or no user'
            yield Problem("[alerts.smtp]", "a password without encryption", 'security = "none"', expected)
