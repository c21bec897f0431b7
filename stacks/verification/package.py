"""What a verification runs: the commands with the packages that they import, and the lake file."""

from __future__ import annotations

import shutil
from pathlib import Path

import connectors
from stacks.processing.spark_package import LakeFiles
from tributary.aws.spark_submit import LAKE_FILE

REQUIREMENTS = "requirements.txt"

_PACKAGES = ("connectors", "spark_app", "tributary")
"""What the commands import. They are side by side, in a checkout and in an installed wheel."""
_PINNED = Path(__file__).with_name(REQUIREMENTS)


def write_package(lake_files: LakeFiles, folder: Path) -> None:
    """Write to an empty folder what CodeBuild unpacks, from which `python -m tributary.cli` runs."""
    root = Path(connectors.__file__).parents[1]
    for package in _PACKAGES:
        shutil.copytree(root / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(_PINNED, folder / REQUIREMENTS)
    lake_files.write(folder / LAKE_FILE)
