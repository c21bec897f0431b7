"""What the tests of the stacks share: an app as `cdk synth` makes it, without the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App

import stacks

if TYPE_CHECKING:
    from tests.stacks.synthesis import Synthesis

FLAGS = json.loads((Path(stacks.__file__).parents[1] / "cdk.json").read_text())["context"]


@pytest.fixture
def app(tmp_path: Path) -> App:
    """An app with the project's own feature flags, for the test of one stack."""
    return App(outdir=str(tmp_path / "cdk.out"), context=FLAGS)


class Synthesized:
    """The lakes of the matrix by the names of their settings, each synthesized once in a run."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._made: dict[str, Synthesis] = {}

    def __call__(self, settings: str) -> Synthesis:
        from tests.stacks.synthesis import synthesize

        if settings not in self._made:
            self._made[settings] = synthesize(settings, self._folders.mktemp(settings))
        return self._made[settings]

    @cached_property
    def templates(self) -> Mapping[str, Mapping[str, Any]]:
        """Every template of the matrix once, by the settings and the stack where it comes first."""
        from tests.stacks.lakes import SETTINGS

        first: dict[str, str] = {}
        for settings in SETTINGS:
            for stack, text in self(settings).texts.items():
                first.setdefault(text, f"{settings}-{stack}")
        return {name: json.loads(text) for text, name in first.items()}


@pytest.fixture(scope="session")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    return Synthesized(tmp_path_factory)
