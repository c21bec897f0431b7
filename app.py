"""The CDK app: reads the lake file, wires the stacks, nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import stacks  # noqa: F401  (chooses the Node.js that aws_cdk starts when it is imported)
from aws_cdk import App

from contract.errors import TributaryError
from contract.lake import read_lake
from stacks.assembly import assemble

HERE = Path(__file__).parent


def main() -> None:
    """Context: `lake`, the lake file (lake.toml), and `assets`, the folder of what was built (dist)."""
    app = App()
    lake_file = HERE / (app.node.try_get_context("lake") or "lake.toml")
    assets = HERE / (app.node.try_get_context("assets") or "dist")
    try:
        assemble(app, read_lake(lake_file), lake_file, assets)
    except TributaryError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
