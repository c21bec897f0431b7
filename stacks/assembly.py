"""How the stacks of a lake hang together: which is built from which, and in which order."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import App

from contract.lake import Lake
from stacks.known_to_aws import check_known
from stacks.lake import LakeStack
from stacks.network import NetworkStack


def assemble(app: App, lake: Lake, lake_file: Path, assets: Path) -> None:
    """All stacks of the lake.

    assets  the folder with what `tributary plugins build` and `tributary package` have built

    Raises TributaryError.
    """
    check_known(lake)
    NetworkStack(app, lake)
    LakeStack(app, lake)
