"""The completed instants of a Hudi timeline, read from their texts.

To ask Py4J for what each of them is takes longer than to list them; HoodieInstant#toString tells it all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tributary.contract.errors import TributaryError

_COMPLETED_INSTANT = re.compile(r"\[(?P<requested>\d+)__(?P<completed>\d+)__(?P<action>[a-z]+)__COMPLETED\]")


class UnknownInstant(TributaryError):
    """Hudi tells an instant in another form than that of its release that is pinned here."""


@dataclass(frozen=True, order=True)
class CompletedInstant:
    """`completed` and `requested` are times as Hudi writes them, `requested` is the instant's name. In the
    order of completion, as InstantComparators has it."""

    completed: str
    requested: str
    action: str


def parse_completed_instants(texts: Sequence[str]) -> tuple[CompletedInstant, ...]:
    """In the order of the texts. Raises `UnknownInstant`."""
    return tuple(_parse_completed_instant(text) for text in texts)


def _parse_completed_instant(text: str) -> CompletedInstant:
    match = _COMPLETED_INSTANT.fullmatch(text)
    if match is None:
        raise UnknownInstant(
            what="Hudi tells a completed instant in a form that is not known",
            found=text,
            expected="[20261122101500123__20261122101501000__deltacommit__COMPLETED]",
            remedy="Use the release of Hudi that the project pins.",
        )
    return CompletedInstant(**match.groupdict())
