"""What to watch of the passwords that rotate: their age, and whether their connectors have read them."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch

from stacks.base import TributaryStack
from stacks.database.password_rotation import MINUTES
from stacks.functions.rotation.main import AGE, UNREAD
from stacks.metrics import source_metric
from stacks.watched import Threshold, Watched

PASSWORD_ROTATION = "password-rotation"
"""The runbook's section on passwords that rotate."""

_DAYS_OF_GRACE = 2
"""Secrets Manager rotates within a day after the days are over, and tries again after a failure."""
_CALLS = 6


def watched_passwords(stack: TributaryStack) -> list[Watched]:
    """Return what to watch of each of the lake's own databases."""
    days, lake = stack.aws.connect.rotation_days, stack.lake
    if not days:
        return []
    own = [source.name for source in lake.connected_sources if source.name not in stack.aws.source]
    return [
        watched
        for name in own
        for watched in (
            Watched(
                PASSWORD_ROTATION,
                f"The password of {name} should have changed already.",
                source_metric(lake.name, name, AGE, "Maximum", MINUTES),
                Threshold(days + _DAYS_OF_GRACE, points=3, of=3),
                name,
            ),
            Watched(
                PASSWORD_ROTATION,
                f"The connector of {name} has not read its password, or nobody can look.",
                source_metric(lake.name, name, UNREAD, "Minimum", MINUTES),
                Threshold(0, points=_CALLS, of=_CALLS),
                f"{name}-unread",
                # The function that looks cannot reach the database, or it fails.
                missing=cloudwatch.TreatMissingData.BREACHING,
            ),
        )
    ]
