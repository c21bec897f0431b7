"""Read the templates of `cdk synth`, in the order in which their stacks are deployed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from tributary.contract.aws_names import StackKind
from tributary.contract.errors import TributaryError

Resource = Mapping[str, Any]
Templates = Mapping[str, Mapping[str, Any]]
"""Templates by the stack's id in the app, such as `Network`."""

_ORDER = [kind.title() for kind in get_args(StackKind)]
_STACK = "aws:cloudformation:stack"


def read_templates(folder: Path) -> Templates:
    """Read the templates of a cloud assembly, such as cdk.out. Raise TributaryError if the folder is none.

    The CDK does not remove the templates of an earlier synth. So only the manifest tells which of them count.
    """
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        raise TributaryError(
            "there are no templates",
            where=str(folder),
            expected="the output of cdk synth",
            remedy="Run cdk synth -c lake=…, or name the folder of its --output.",
        )
    artifacts = json.loads(manifest.read_text())["artifacts"]
    files = {
        stack: artifact["properties"]["templateFile"]
        for stack, artifact in artifacts.items()
        if artifact["type"] == _STACK
    }
    return {stack: json.loads((folder / files[stack]).read_text()) for stack in sorted(files, key=_position)}


def resources_of(templates: Templates) -> Iterator[tuple[str, str, Resource]]:
    """Yield each stack, logical id and resource."""
    for stack, template in templates.items():
        for logical_id, resource in template["Resources"].items():
            yield stack, logical_id, resource


def rendered(value: Any) -> str:
    """Return a template's value as text, with references in braces and joins resolved."""
    match value:
        case str():
            return value
        case {"Ref": name}:
            return f"{{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"{{{name}.{attribute}}}"
        case {"Fn::Join": [separator, list(parts)]}:
            return str(separator).join(rendered(part) for part in parts)
        case {"Fn::ImportValue": name}:
            return f"{{{rendered(name)}}}"
        case {"Fn::Sub": str(text)}:
            return text.replace("${", "{")
        case _:
            return json.dumps(value, sort_keys=True)


def _position(stack: str) -> tuple[int, str]:
    return (_ORDER.index(stack) if stack in _ORDER else len(_ORDER), stack)
