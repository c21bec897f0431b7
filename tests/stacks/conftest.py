"""What the tests of the stacks share: an app as `cdk synth` makes it, without the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import App

import stacks

FLAGS = json.loads((Path(stacks.__file__).parents[1] / "cdk.json").read_text())["context"]


@pytest.fixture
def app(tmp_path: Path) -> App:
    """An app with the project's own feature flags, for the test of one stack."""
    return App(outdir=str(tmp_path / "cdk.out"), context=FLAGS)
