"""Refuse a name that AWS does not have, with the setting that holds it and the names that come close."""

from __future__ import annotations

import difflib

from tributary.contract.errors import TributaryError


def check_name(setting: str, found: str, known: frozenset[str], expected: str) -> None:
    """Raise TributaryError unless `known` has the name.

    setting   a key below `[aws]`, such as `kafka.broker`
    expected  what every known name is, such as "a broker type of Amazon MSK"
    """
    if found in known:
        return
    examples = difflib.get_close_matches(found, sorted(known), n=3, cutoff=0.5) or sorted(known)[:3]
    raise TributaryError(
        f"this is not {expected}",
        where=entry_of(setting),
        found=f'"{found}"',
        expected=f"a name such as {', '.join(examples)}",
        remedy="If it is new on AWS, upgrade to a release of Tributary that knows it.",
    )


def entry_of(setting: str) -> str:
    """Return the setting's place in the lake file: `[aws].region` or `[aws.kafka].broker`."""
    section, _, key = setting.rpartition(".")
    return f"[aws.{section}].{key}" if section else f"[aws].{key}"
