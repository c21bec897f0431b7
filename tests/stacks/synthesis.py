"""Synthesizes a lake as `cdk synth` does, but with every finding of the security packs open, and keeps the
acknowledgements, so that both can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from aws_cdk import App
from cdk_nag import (
    AwsSolutionsChecks,
    HIPAASecurityChecks,
    NIST80053R5Checks,
    PCIDSS321Checks,
)
from constructs import IConstruct

from stacks.assembly import assemble
from stacks.checks import findings
from stacks.synthesized import Templates, read_templates
from tests.stacks.conftest import FLAGS
from tests.stacks.lakes import write_assets, write_lake_file
from tributary.contract.lake import read_lake

PACKS = {
    "AwsSolutions": AwsSolutionsChecks,
    "NIST 800-53 R5": NIST80053R5Checks,
    "HIPAA": HIPAASecurityChecks,
    "PCI DSS 3.2.1": PCIDSS321Checks,
}


@dataclass(frozen=True, order=True)
class Finding:
    """A rule that a resource breaks: the rule's whole id, such as `AwsSolutions-IAM5[Resource::*]`."""

    rule: str
    construct: str


@dataclass(frozen=True, order=True)
class Acknowledged:
    rule: str
    construct: str
    reason: str

    def covers(self, finding: Finding) -> bool:
        """Children of a construct inherit what is acknowledged for it."""
        return finding.rule == self.rule and f"{finding.construct}/".startswith(f"{self.construct}/")


@dataclass(frozen=True)
class Synthesis:
    """A lake's synthesized app.

    settings  the name that tests.stacks.lakes gives them
    folder       the cloud assembly
    """

    settings: str
    app: App
    folder: Path
    acknowledged: tuple[Acknowledged, ...]

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The templates by stack, as they are in their files."""
        return {stack: (self.folder / f"{stack}.template.json").read_text() for stack in self.templates}

    @cached_property
    def templates(self) -> Templates:
        return read_templates(self.folder)

    @cached_property
    def findings(self) -> Mapping[str, tuple[Finding, ...]]:
        """By pack, as if nothing was acknowledged."""
        return {name: _findings(pack, self.app) for name, pack in PACKS.items()}


def synthesize(settings: str, folder: Path) -> Synthesis:
    """Into a folder of its own, which exists."""
    return synthesize_app(settings, folder, lambda app: _assemble(app, settings, folder))


def synthesize_app(settings: str, folder: Path, build: Callable[[App], None]) -> Synthesis:
    """Synthesize what `build` adds to an app, into the folder."""
    app = App(outdir=str(folder / "cdk.out"), context=FLAGS)
    acknowledged: list[Acknowledged] = []

    def of(construct: IConstruct) -> SimpleNamespace:
        return SimpleNamespace(
            acknowledge=lambda *all_of_them: acknowledged.extend(
                Acknowledged(each.id, construct.node.path, each.reason or "") for each in all_of_them
            )
        )

    with mock.patch.object(findings, "Validations", SimpleNamespace(of=of)):
        build(app)
        app.synth()
    return Synthesis(settings, app, folder / "cdk.out", tuple(acknowledged))


def synthesize_for_deployment(settings: str, folder: Path) -> App:
    """As `cdk synth` has it: what is acknowledged is no finding."""
    app = App(outdir=str(folder / "cdk.out"), context=FLAGS)
    _assemble(app, settings, folder)
    app.synth()
    return app


def open_findings(app: App) -> list[Finding]:
    return [finding for pack in PACKS.values() for finding in _findings(pack, app)]


def _assemble(app: App, settings: str, folder: Path) -> None:
    lake_file = write_lake_file(settings, folder)
    assemble(app, read_lake(lake_file), lake_file, write_assets(folder))


def _findings(pack: type[Any], app: App) -> tuple[Finding, ...]:
    """A rule that could not be applied is one too, and may be of no resource."""
    found: set[Finding] = set()
    for violation in pack(app).validate_scope(app).violations:
        resources = violation.violating_resources or ()
        found |= {Finding(violation.rule_name, resource.construct_path) for resource in resources}
        found |= set() if resources else {Finding(violation.rule_name, "")}
    return tuple(sorted(found))
