"""Runs cfn-lint over templates: CloudFormation's own schemas, and what AWS says beyond them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stacks.repetitions import without_repetitions

_CFN_LINT = Path(sys.executable).parent / "cfn-lint"


@dataclass(frozen=True, order=True)
class LintFinding:
    """rule  such as E3012; W are warnings
    path     of the property in the template
    """

    template: str
    rule: str
    path: str
    message: str


def lint(templates: Mapping[str, Mapping[str, Any]], folder: Path, region: str) -> list[LintFinding]:
    """Of templates by name; `folder` exists and is empty. It takes long, hence on all processors."""
    files = []
    for name, template in without_repetitions(templates).items():
        files.append(folder / f"{name}.json")
        files[-1].write_text(json.dumps(template, indent=1))
    processors = os.cpu_count() or 1
    shares = [share for share in (files[first::processors] for first in range(processors)) if share]
    command = [str(_CFN_LINT), "--format", "json", "--regions", region, "--non-zero-exit-code", "none", "--"]
    running = [
        subprocess.Popen([*command, *map(str, share)], stdout=subprocess.PIPE, text=True) for share in shares
    ]
    outputs = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)
    return sorted(
        LintFinding(
            Path(found["Filename"]).stem,
            found["Rule"]["Id"],
            "/".join(map(str, found["Location"]["Path"] or ())),
            found["Message"],
        )
        for output in outputs
        for found in json.loads(output or "[]")
    )
