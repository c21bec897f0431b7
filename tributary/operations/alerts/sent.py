"""What was sent already, in the state folder: so an alert is sent once, and once more when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tributary.local.state import write_private_file
from tributary.operations.alerts.rules import Alert


class SentAlert(BaseModel):
    """An alert that was sent and is not over. `since` is when it was first found, in ISO 8601."""

    model_config = ConfigDict(frozen=True)

    rule: str
    subject: str
    text: str
    since: str

    @property
    def key(self) -> str:
        return f"{self.rule} {self.subject}"


class _File(BaseModel):
    channels: dict[str, tuple[SentAlert, ...]]


@dataclass(frozen=True)
class Changes:
    """What has changed for one channel."""

    new: tuple[Alert, ...]
    over: tuple[SentAlert, ...]


def changes(sent: Iterable[SentAlert], now: Iterable[Alert], known: Iterable[str]) -> Changes:
    """Return the alerts that are new, and the sent ones that are over.

    known  the keys of the sent alerts about which something is known now
    """
    before, after = {one.key: one for one in sent}, {one.key: one for one in now}
    known_keys = {*known}
    return Changes(
        new=tuple(alert for key, alert in after.items() if key not in before),
        over=tuple(alert for key, alert in before.items() if key not in after and key in known_keys),
    )


def read_sent(path: Path) -> Mapping[str, tuple[SentAlert, ...]]:
    """Return the alerts that are not over, by the channel that they were sent by."""
    try:
        return _File.model_validate_json(path.read_bytes()).channels
    except (FileNotFoundError, ValidationError):
        return {}


def write_sent(path: Path, sent: Mapping[str, tuple[SentAlert, ...]]) -> None:
    draft = path.with_suffix(".draft")
    write_private_file(draft, _File(channels=dict(sent)).model_dump_json(indent=2))
    draft.replace(path)
