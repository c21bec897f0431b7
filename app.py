"""The CDK app: read the lake file and assemble the stacks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import stacks  # noqa: F401  (before aws_cdk, which starts the Node.js that this import chooses)

# isort: split
from aws_cdk import App

from stacks.assembly import assemble
from tributary.contract.errors import TributaryError
from tributary.contract.lake import read_lake

HERE = Path(__file__).parent


def main() -> None:
    """Write the templates to cdk.out, or to the folder that the command `cdk` asks for.

    The context has two paths, relative to this folder: `lake`, the lake file (lake.toml), and `assets`, the
    folder of built files (dist). `env` names an environment with a file of its own beside the lake file.
    Without the command, the context comes from cdk.json and $CDK_CONTEXT_JSON.
    """
    flags = json.loads((HERE / "cdk.json").read_text())["context"]
    app = App(context=flags, outdir=os.environ.get("CDK_OUTDIR") or str(HERE / "cdk.out"))
    lake_file = HERE / (app.node.try_get_context("lake") or "lake.toml")
    assets = HERE / (app.node.try_get_context("assets") or "dist")
    environment = app.node.try_get_context("env")
    try:
        assemble(app, read_lake(lake_file, environment), lake_file, assets, environment)
    except TributaryError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
