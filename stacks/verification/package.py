"""What a verification runs: the commands with the packages that they import, and the lake file."""

from __future__ import annotations

import shutil
from pathlib import Path

import connectors
import spark_app
import tributary
from stacks.processing.spark_package import LakeFiles
from tributary.aws.spark_submit import LAKE_FILE

REQUIREMENTS = "requirements.txt"

_PACKAGES = (connectors, spark_app, tributary)
_PINNED = Path(__file__).with_name(REQUIREMENTS)


def write_package(lake_files: LakeFiles, folder: Path) -> None:
    """Write to an empty folder what CodeBuild unpacks, from which `python -m tributary` runs."""
    for package in _PACKAGES:
        (source,) = package.__path__
        shutil.copytree(source, folder / package.__name__, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(_PINNED, folder / REQUIREMENTS)
    lake_files.write(folder / LAKE_FILE)
