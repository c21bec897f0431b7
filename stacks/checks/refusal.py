"""Refuse a name that AWS does not know, with the setting that holds it and the names that come close."""

from __future__ import annotations

import difflib

from tributary.contract.errors import TributaryError


def check_name(setting: str, found: str, known: frozenset[str], expected: str) -> None:
    """Raise TributaryError unless `known` has the name. `setting` is a key below `[aws]`: `kafka.broker`."""
    if found in known:
        return
    examples = difflib.get_close_matches(found, sorted(known), n=3, cutoff=0.5) or sorted(known)[:3]
    raise TributaryError(
        "AWS does not know this name",
        where=_entry(setting),
        found=f'"{found}"',
        expected=f"{expected}, such as {', '.join(examples)}",
        remedy="If it is new on AWS, upgrade to a release of Tributary that knows it.",
    )


def _entry(setting: str) -> str:
    """Return the setting's place in the lake file: `[aws].region` or `[aws.kafka].broker`."""
    section, _, key = setting.rpartition(".")
    return f"[aws.{section}].{key}" if section else f"[aws].{key}"
