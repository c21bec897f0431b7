"""Every IAM statement of templates as lines that a person can review, the same for the same templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stacks.synthesized import rendered


@dataclass(frozen=True)
class Statement:
    """One statement of a policy.

    holder  the stack and the logical id of the policy, role, key, bucket, topic, … that has it
    """

    holder: str
    kind: str
    content: Mapping[str, Any]

    @property
    def is_allowed(self) -> bool:
        return bool(self.content["Effect"] == "Allow")

    @property
    def actions(self) -> tuple[str, ...]:
        return _texts(self.content.get("Action", ()))

    @property
    def resources(self) -> tuple[str, ...]:
        return _texts(self.content.get("Resource", ()))

    def lines(self) -> Iterator[str]:
        yield f"{self.content['Effect']} {', '.join(self.actions)}"
        for key in ("NotAction", "NotResource", "NotPrincipal"):
            if key in self.content:
                yield f"  {key} {', '.join(_texts(self.content[key]))}"
        if "Principal" in self.content:
            yield f"  to {_principal(self.content['Principal'])}"
        for resource in self.resources:
            yield f"  on {resource}"
        for operator, tests in sorted(self.content.get("Condition", {}).items()):
            for key, value in sorted(tests.items()):
                yield f"  if {key} {operator} {', '.join(_texts(value))}"


def statements(templates: Mapping[str, Mapping[str, Any]]) -> Iterator[Statement]:
    """All of them, in the order of stacks and of the templates."""
    for stack, template in templates.items():
        for logical_id, resource in template["Resources"].items():
            for content in _statements_in(resource.get("Properties", {})):
                yield Statement(f"{stack}/{logical_id}", resource["Type"], content)


def managed_policies(templates: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Role, and each policy of AWS's own that is attached to it."""
    for stack, template in templates.items():
        for logical_id, resource in template["Resources"].items():
            for policy in resource.get("Properties", {}).get("ManagedPolicyArns", ()):
                if not (isinstance(policy, dict) and "Ref" in policy):
                    yield f"{stack}/{logical_id}", rendered(policy)


def _statements_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Wherever they are: a policy may be a property of nearly any resource."""
    if isinstance(value, dict):
        if value.get("Effect") in ("Allow", "Deny") and ("Action" in value or "NotAction" in value):
            yield value
        else:
            for below in value.values():
                yield from _statements_in(below)
    elif isinstance(value, list):
        for below in value:
            yield from _statements_in(below)


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(sorted({_ASSET.sub("<asset>", rendered(one)) for one in values}))


_ASSET = re.compile("[0-9a-f]{64}")
"""The name of a file that goes along with the templates: another one with every change of the code in it."""


def _principal(principal: Any) -> str:
    if not isinstance(principal, dict) or set(principal) - {"AWS", "Service", "Federated"}:
        return rendered(principal)
    return ", ".join(text for kind in sorted(principal) for text in _texts(principal[kind]))
