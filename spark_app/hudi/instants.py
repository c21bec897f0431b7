"""The instants of a Hudi timeline: how to write a moment as an instant, and how to parse Hudi's texts.

Asking Py4J for the parts of each instant takes longer than listing the instants. HoodieInstant#toString has
all parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tributary.contract.errors import TributaryError

_INSTANT = "%Y%m%d%H%M%S%f"
_COMPLETED_INSTANT = re.compile(r"\[(?P<requested>\d+)__(?P<completed>\d+)__(?P<action>[a-z]+)__COMPLETED\]")


class UnknownInstant(TributaryError):
    """Hudi writes an instant in a different form than the pinned release does."""


@dataclass(frozen=True, order=True)
class CompletedInstant:
    """A completed instant: when it completed, its name (when it was requested), and its action.

    Instants sort in the order of completion, as in Hudi's InstantComparators. Both times are written as
    `instant_of` writes them."""

    completed: str
    requested: str
    action: str


def instant_of(moment: datetime) -> str:
    """Return Hudi's name for an instant requested at the moment, which is in UTC."""
    return moment.strftime(_INSTANT)[:17]


def parse_completed_instants(texts: Sequence[str]) -> tuple[CompletedInstant, ...]:
    """Return the instants in the order of their texts. Raises `UnknownInstant`."""
    return tuple(_parse_completed_instant(text) for text in texts)


def _parse_completed_instant(text: str) -> CompletedInstant:
    match = _COMPLETED_INSTANT.fullmatch(text)
    if match is None:
        raise UnknownInstant(
            what="Hudi wrote a completed instant in a form that is not known",
            found=text,
            expected="[20261122101500123__20261122101501000__deltacommit__COMPLETED]",
            remedy="Use the release of Hudi that the project pins.",
        )
    return CompletedInstant(**match.groupdict())
