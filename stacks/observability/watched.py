"""What an alarm watches and what a graph shows, as values: each part of the lake contributes its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from aws_cdk import aws_cloudwatch as cloudwatch


@dataclass(frozen=True)
class Threshold:
    """An alarm is raised where the metric is beyond `limit` in `points` of the last `of` periods."""

    limit: float
    is_least: bool = False
    points: int = 3
    of: int = 5


@dataclass(frozen=True)
class Watched:
    """What one alarm watches.

    section  of the runbook: what to do when the alarm has led there
    subject  which of several, such as a connector; empty where there is one
    missing  what a period without a value means
    silence  whether to tell also that there are no values at all
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
