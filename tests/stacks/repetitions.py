"""Knows which resources of many templates are the same, so that a slow tool looks at each of them once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Template = Mapping[str, Any]


def without_repetitions(templates: Mapping[str, Template]) -> dict[str, Template]:
    """Return the templates by name, each with the resources that no template before it has.

    The resources that these refer to stay with them. A template that has nothing new is left out.
    """
    return dict(_with_new_resources(templates))


def _with_new_resources(templates: Mapping[str, Template]) -> Iterator[tuple[str, Template]]:
    seen: set[tuple[str, str]] = set()
    for name, template in templates.items():
        texts = {logical_id: json.dumps(resource) for logical_id, resource in template["Resources"].items()}
        new = set(texts.items()) - seen
        kept = _with_references({logical_id for logical_id, _ in new}, texts)
        if new == set(texts.items()):
            yield name, template
        elif new:
            resources = {each: resource for each, resource in template["Resources"].items() if each in kept}
            # An output may name a resource that is not there any more.
            yield (
                name,
                {key: template[key] for key in template.keys() - {"Outputs"}} | {"Resources": resources},
            )
        seen |= new


def _with_references(logical_ids: set[str], texts: Mapping[str, str]) -> set[str]:
    """Add the resources that these name, directly or not; `texts` are all resources of the template."""
    found: set[str] = set()
    waiting = set(logical_ids)
    while waiting:
        found |= waiting
        words = {word for each in waiting for word in re.findall(r"\w+", texts[each])}
        waiting = (words & texts.keys()) - found
    return found
