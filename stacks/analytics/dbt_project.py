"""A user's dbt project as CodeBuild gets it: its files, and the packages that a run installs."""

from __future__ import annotations

import shutil
from pathlib import Path

from tributary.contract.errors import TributaryError

PROJECT = "project"
"""The folder of the project in what CodeBuild unpacks."""
REQUIREMENTS = "requirements.txt"

_MADE_BY_DBT = ("target", "logs", "dbt_packages", ".user.yml", "*.duckdb", "__pycache__", ".git", ".venv")
_PINNED = Path(__file__).with_name(REQUIREMENTS)


def write_project(project: Path, folder: Path) -> None:
    """Write the project and its requirements to an empty folder. Raise TributaryError if it is none.

    A requirements.txt in the project says what a run installs. Otherwise, Tributary's own pins do.
    """
    for name, what in {"dbt_project.yml": "dbt project", "profiles.yml": "profile"}.items():
        if not (project / name).is_file():
            raise TributaryError(
                f"the folder has no {what}",
                where="[aws.dbt].project",
                found=f"no file {project / name}",
                expected="a folder with dbt_project.yml and profiles.yml",
                remedy="Correct the path, which counts from the lake file's folder, or add the file.",
            )
    shutil.copytree(project, folder / PROJECT, ignore=shutil.ignore_patterns(*_MADE_BY_DBT))
    own = project / REQUIREMENTS
    shutil.copyfile(own if own.is_file() else _PINNED, folder / REQUIREMENTS)


def install_options(project: Path) -> str:
    """Return pip's options for the requirements. Tributary's own name every package, with its hashes."""
    return "" if (project / REQUIREMENTS).is_file() else "--require-hashes --no-deps "


def has_packages(project: Path) -> bool:
    """Tell whether the project uses packages of dbt, which `dbt deps` installs."""
    return any((project / name).is_file() for name in ("packages.yml", "dependencies.yml"))
