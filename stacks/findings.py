"""Findings of a security pack that are as they have to be: each acknowledged beside its cause, and why."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """`reasons`: by the finding's whole id, such as `AwsSolutions-IAM5[Resource::*]`, the mechanism that makes
    it harmless here. Children of the construct inherit it."""
    Validations.of(construct).acknowledge(
        *(Acknowledgment(id=finding, reason=reason) for finding, reason in reasons.items())
    )
