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
    environment = app.node.try_get_context("env")
    try:
        lake_file, assets = _path(app, "lake", "lake.toml"), _path(app, "assets", "dist")
        assemble(app, read_lake(lake_file, environment), lake_file, assets, environment)
    except TributaryError as error:
        sys.exit(str(error))
    app.synth()


def _path(app: App, key: str, default: str) -> Path:
    """Return the path that the context has, or the default. Raise TributaryError if the path is empty."""
    path = app.node.try_get_context(key)
    if path == "":
        # A variable of the shell that is not set must not deploy another lake.
        raise TributaryError(
            "the context is empty", where=f"cdk -c {key}=", expected=f"a path, or no -c {key}"
        )
    return HERE / (default if path is None else path)


if __name__ == "__main__":
    main()
