"""Send an alert: to a webhook in Slack's form, or by mail. Errors never show a URL or a password."""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime, localtime, make_msgid
from typing import Protocol
from urllib.parse import urlsplit

import requests

from tributary.contract.alerts import Alerts, Smtp
from tributary.contract.errors import TributaryError

SECONDS = 10.0


class NotSent(TributaryError):
    """An alert did not reach its place."""


class Channel(Protocol):
    """A way to send. `name` is what the state folder and messages call it."""

    @property
    def name(self) -> str: ...

    def send(self, title: str, text: str) -> None:
        """Send one message. Raises NotSent."""


@dataclass(frozen=True)
class Webhook:
    """A webhook that takes Slack's messages. The variable holds its URL, which is a secret."""

    variable: str
    environment: Mapping[str, str]
    name: str = "webhook"

    def send(self, title: str, text: str) -> None:
        url = _secret(self.environment, self.variable, "[alerts].webhook_env")
        # Slack reads these three characters as markup.
        plain = f"*{title}*\n{text}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        try:
            answer = requests.post(url, json={"text": plain}, timeout=SECONDS)
        except requests.RequestException as error:
            # The error's own text has the URL.
            raise _not_sent(self.name, _place_of(url), f"{type(error).__name__}{_cause(error)}") from None
        if not answer.ok:
            raise _not_sent(self.name, _place_of(url), f"status {answer.status_code}")


@dataclass(frozen=True)
class Mail:
    """A mail server."""

    smtp: Smtp
    environment: Mapping[str, str]
    name: str = "mail"

    def send(self, title: str, text: str) -> None:
        message = EmailMessage()
        message["Subject"] = " ".join(title.split())
        message["From"] = self.smtp.sender
        message["To"] = ", ".join(self.smtp.recipients)
        # Mail servers take messages without these for spam.
        message["Date"] = format_datetime(localtime())
        message["Message-ID"] = make_msgid(domain=self.smtp.sender.rpartition("@")[2] or None)
        message.set_content(text)
        try:
            with self._session() as session:
                session.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            place = f"{self.smtp.host}:{self.smtp.port}"
            raise _not_sent(self.name, place, f"{type(error).__name__}: {error}") from None

    def _session(self) -> smtplib.SMTP:
        smtp, context = self.smtp, ssl.create_default_context()
        if smtp.security == "tls":
            session: smtplib.SMTP = smtplib.SMTP_SSL(smtp.host, smtp.port, timeout=SECONDS, context=context)
        else:
            session = smtplib.SMTP(smtp.host, smtp.port, timeout=SECONDS)
        try:
            if smtp.security == "starttls":
                session.starttls(context=context)
            if smtp.user is not None and smtp.password_env is not None:
                password = _secret(self.environment, smtp.password_env, "[alerts.smtp].password_env")
                session.login(smtp.user, password)
        except BaseException:
            session.close()
            raise
        return session


def channels(alerts: Alerts, environment: Mapping[str, str] | None = None) -> tuple[Channel, ...]:
    """Return the ways to send that the lake file names."""
    variables = os.environ if environment is None else environment
    found: list[Channel] = []
    if alerts.webhook_env is not None:
        found.append(Webhook(alerts.webhook_env, variables))
    if alerts.smtp is not None:
        found.append(Mail(alerts.smtp, variables))
    return tuple(found)


def _secret(environment: Mapping[str, str], variable: str, entry: str) -> str:
    found = environment.get(variable)
    if found:
        return found
    raise NotSent(
        f"the environment variable {variable} is empty or missing",
        where=entry,
        remedy=f"Set it where the ingest runs: export {variable}=…",
    )


def _not_sent(name: str, place: str, found: str) -> NotSent:
    return NotSent(f"no message could be sent by {name}", where=place, found=found)


def _place_of(url: str) -> str:
    """Return the host of a URL. The rest of it is a secret."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "[alerts].webhook_env"
    except ValueError:
        return "[alerts].webhook_env"


def _cause(error: requests.RequestException) -> str:
    """Return what an error means that does not say it without the URL."""
    match error:
        case requests.exceptions.SSLError():
            return ", the certificate cannot be verified"
        case requests.ConnectionError():
            return ", nobody answers there"
        case requests.exceptions.MissingSchema() | requests.exceptions.InvalidSchema():
            return ", expected a URL with http:// or https://"
        case _:
            return ""
