"""The options that several commands share, with their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LakeFile = Annotated[
    Path,
    typer.Option("--lake", metavar="FILE", envvar="TRIBUTARY_LAKE", help="The lake file.", show_default=True),
]
Environment = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        envvar="TRIBUTARY_ENV",
        help="The environment on AWS. With staging, lake.staging.toml changes entries of lake.toml.",
    ),
]
StateFolderPath = Annotated[
    Path,
    typer.Option(
        "--state",
        metavar="FOLDER",
        envvar="TRIBUTARY_STATE",
        help="Where the local servers keep their data, logs, ports and secrets.",
        show_default=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]

DEFAULT_LAKE_FILE = Path("lake.toml")
DEFAULT_STATE_FOLDER = Path(".tributary")
