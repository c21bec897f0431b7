"""Alarms and graphs as values. Each part of the lake contributes its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from aws_cdk import aws_cloudwatch as cloudwatch

RUNBOOK = "docs/operate-aws.md"


@dataclass(frozen=True)
class Threshold:
    """The alarm rings if the metric is beyond `limit` in `points` of the last `of` periods."""

    limit: float
    is_least: bool = False
    points: int = 3
    of: int = 5


@dataclass(frozen=True)
class Watched:
    """The subject of one alarm.

    section  the section of the runbook that says what to do
    subject  which of several things, such as a connector; empty if there is only one
    missing  the meaning of a period without a value
    silence  whether to notify also if there are no values at all
    """

    section: str
    says: str
    metric: cloudwatch.IMetric
    threshold: Threshold
    subject: str = ""
    missing: cloudwatch.TreatMissingData = field(default=cloudwatch.TreatMissingData.NOT_BREACHING)
    silence: bool = False


@dataclass(frozen=True)
class Graph:
    """One graph of the dashboard."""

    title: str
    metrics: tuple[cloudwatch.IMetric, ...]
