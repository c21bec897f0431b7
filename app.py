"""The CDK app: reads the lake file, wires the stacks, nothing else."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import stacks  # noqa: F401  (before aws_cdk, whose import starts the Node.js that this one chooses)

# isort: split
from aws_cdk import App

from stacks.assembly import assemble
from tributary.contract.errors import TributaryError
from tributary.contract.lake import read_lake

HERE = Path(__file__).parent


def main() -> None:
    """Writes the templates to cdk.out, or to where the command `cdk` wants them.

    Context: `lake`, the lake file (lake.toml), and `assets`, the folder of what has been built (dist); paths
    are from this folder. Without the command the context is what cdk.json says, and $CDK_CONTEXT_JSON.
    """
    flags = json.loads((HERE / "cdk.json").read_text())["context"]
    app = App(context=flags, outdir=os.environ.get("CDK_OUTDIR") or str(HERE / "cdk.out"))
    lake_file = HERE / (app.node.try_get_context("lake") or "lake.toml")
    assets = HERE / (app.node.try_get_context("assets") or "dist")
    try:
        assemble(app, read_lake(lake_file), lake_file, assets)
    except TributaryError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
