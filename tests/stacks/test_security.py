"""Security packs and checkov over every lake of the matrix: nothing open, nothing acknowledged in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stacks.checkov import CheckovFinding, checkov_findings, skipped
from tests.stacks.conftest import Synthesized
from tests.stacks.lakes import SETTINGS
from tests.stacks.repetitions import Template, without_repetitions
from tests.stacks.synthesis import PACKS, open_findings, synthesize_for_deployment

everywhere = pytest.mark.parametrize("settings", SETTINGS)


@everywhere
@pytest.mark.parametrize("pack", PACKS)
def test_every_finding_of_a_pack_is_acknowledged(synthesized: Synthesized, settings: str, pack: str) -> None:
    lake = synthesized(settings)
    assert [
        finding
        for finding in lake.findings[pack]
        if not any(acknowledged.covers(finding) for acknowledged in lake.acknowledged)
    ] == []


@everywhere
def test_every_acknowledgement_is_of_a_finding_that_is_there(synthesized: Synthesized, settings: str) -> None:
    lake = synthesized(settings)
    findings = [finding for found in lake.findings.values() for finding in found]
    assert [
        acknowledged
        for acknowledged in lake.acknowledged
        if not any(acknowledged.covers(finding) for finding in findings)
    ] == []


@pytest.mark.parametrize("settings", ["small", "production"])
def test_what_is_acknowledged_is_no_finding_when_the_app_is_deployed(settings: str, tmp_path: Path) -> None:
    assert open_findings(synthesize_for_deployment(settings, tmp_path)) == []


@pytest.fixture(scope="module")
def templates(synthesized: Synthesized) -> dict[str, Template]:
    """Every resource of the matrix once: checkov takes long."""
    return without_repetitions(synthesized.templates)


@pytest.fixture(scope="module")
def checked(templates: dict[str, Template], tmp_path_factory: pytest.TempPathFactory) -> set[CheckovFinding]:
    return checkov_findings(templates, tmp_path_factory.mktemp("checkov"))


def test_every_finding_of_checkov_is_skipped_beside_its_cause(
    checked: set[CheckovFinding], templates: dict[str, Template]
) -> None:
    assert sorted(checked - {finding for finding, _ in skipped(templates)}) == []


def test_every_skip_of_checkov_is_of_a_finding_that_is_there_and_says_why(
    checked: set[CheckovFinding], templates: dict[str, Template]
) -> None:
    assert [(finding, why) for finding, why in skipped(templates) if finding not in checked or not why] == []
