"""The `[aws.dbt]` and `[aws.quicksight]` parts of the lake file: what models and shows the lake on AWS."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from tributary.contract.entries import Entry, as_tuple, expecting, matching
from tributary.contract.schedules import ScheduledRuns

FolderInLake = Annotated[
    str,
    matching(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*", "the path of a folder, from the lake file's folder"),
]
_WORD = re.compile(r"[A-Za-z0-9_.:,=+*@/-]+")


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or words[0] == "dbt" or not all(map(_WORD.fullmatch, words)):
        raise expecting('what follows "dbt" on the command line, such as "build" or "source freshness"')
    return text


Command = Annotated[str, AfterValidator(_command)]


class DbtJob(ScheduledRuns):
    """A dbt project that AWS CodeBuild runs on a schedule, on Athena.

    project     folder of the project, from the lake file's folder; it has dbt_project.yml and profiles.yml
    target      of profiles.yml
    commands    what to run, in this order, without "dbt"; the run ends at the first one that fails
    """

    project: FolderInLake
    target: Annotated[str, matching(r"[A-Za-z0-9_-]+", "the name of a target")] = "aws"
    commands: Annotated[tuple[Command, ...], BeforeValidator(as_tuple), Field(min_length=1)] = ("build",)


class QuickSight(Entry):
    """Dashboards of Amazon QuickSight, made from the files of boards.

    principal  the ARN of the user or the group that may see them
    boards     folder of the board files, from the lake file's folder
    """

    principal: Annotated[
        str,
        matching(
            r"arn:aws[a-z-]*:quicksight:[a-z0-9-]+:[0-9]{12}:(user|group)/[^/ ]+/[^ ]+",
            "the ARN of a user or group of QuickSight",
        ),
    ]
    boards: FolderInLake = "boards"
