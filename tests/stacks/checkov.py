"""Runs checkov, from its own environment, over templates, as if none of its findings was skipped."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CHECKOV = Path(__file__).parents[2] / ".venv-checkov" / "bin" / "checkov"


@dataclass(frozen=True, order=True)
class CheckovFinding:
    """template  the name of its file, without the ending"""

    check: str
    template: str
    logical_id: str


def checkov_findings(templates: Mapping[str, Mapping[str, Any]], folder: Path) -> set[CheckovFinding]:
    """Of templates by name; `folder` exists and is empty."""
    if not _CHECKOV.exists():
        raise FileNotFoundError(f"{_CHECKOV} is not there: `make setup` installs it")
    for name, template in templates.items():
        (folder / f"{name}.json").write_text(json.dumps(_without_skips(template)))
    command = [_CHECKOV, "--directory", folder, "--framework", "cloudformation", "--skip-download"]
    ran = subprocess.run(
        [*map(str, command), "--compact", "--quiet", "--soft-fail", "--output", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(ran.stdout)
    if report["summary"]["parsing_errors"]:
        raise ValueError(f"checkov could not read {report['results']['parsing_errors']}")
    return {
        CheckovFinding(failed["check_id"], Path(failed["file_path"]).stem, failed["resource"].split(".")[-1])
        for failed in report["results"]["failed_checks"]
    }


def skipped(templates: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[CheckovFinding, str]]:
    """What the resources of the templates skip, each with its reason."""
    for name, template in templates.items():
        for logical_id, resource in template["Resources"].items():
            for skip in _skips(resource):
                yield CheckovFinding(skip["id"], name, logical_id), skip["comment"]


def _skips(resource: Mapping[str, Any]) -> Iterable[Mapping[str, str]]:
    found: Iterable[Mapping[str, str]] = resource.get("Metadata", {}).get("checkov", {}).get("skip", ())
    return found


def _without_skips(template: Mapping[str, Any]) -> dict[str, Any]:
    resources = {
        logical_id: {
            **resource,
            "Metadata": {
                key: value for key, value in resource.get("Metadata", {}).items() if key != "checkov"
            },
        }
        for logical_id, resource in template["Resources"].items()
    }
    return {**template, "Resources": resources}
