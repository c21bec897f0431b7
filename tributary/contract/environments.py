"""Several environments of one lake: a lake file, and a small file for each environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")


def environment_problem(environment: str) -> str | None:
    """Return what an environment's name must be if `environment` breaks that rule, else None."""
    if _NAME.fullmatch(environment):
        return None
    return "1 to 12 lower-case letters and digits, beginning with a letter"


def environment_file(lake_file: Path, environment: str) -> Path:
    """Return the path of the environment's own file: `shop.staging.toml` beside `shop.toml`."""
    return lake_file.with_name(f"{lake_file.stem}.{environment}{lake_file.suffix}")


def in_environment(content: Mapping[str, Any], own: Mapping[str, Any], environment: str) -> Mapping[str, Any]:
    """Return the content of the lake file, with what the environment's own file sets differently.

    Sections are merged key by key. The lake's name gets the environment as a suffix, unless the own file sets
    it. So no two environments share a stack, a bucket or a topic.
    """
    merged = _merged(content, own)
    section, of_own = content.get("lake"), own.get("lake")
    is_named = isinstance(of_own, Mapping) and "name" in of_own
    if is_named or not isinstance(section, Mapping) or not isinstance(section.get("name"), str):
        return merged
    name = f"{section['name']}-{environment}"
    return {**merged, "lake": {**merged["lake"], "name": name}}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        are_sections = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(under, value) if are_sections else value  # type: ignore[arg-type]
    return merged
