"""Findings of a security check that are as they have to be: each acknowledged beside its cause, and why."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """`reasons`: by the finding's whole id, such as `AwsSolutions-IAM5[Resource::*]`, the mechanism that
    makes it harmless here. Children of the construct inherit it."""
    Validations.of(construct).acknowledge(
        *(Acknowledgment(id=finding, reason=reason) for finding, reason in reasons.items())
    )


def skip(resource: IConstruct, reasons: Mapping[str, str]) -> None:
    """`reasons`: by a check of checkov's, such as CKV_AWS_115, the same as for `acknowledge`. A construct of
    several resources stands for the main one."""
    template_part = resource if isinstance(resource, CfnResource) else resource.node.default_child
    assert isinstance(template_part, CfnResource)
    before = (template_part.get_metadata("checkov") or {"skip": []})["skip"]
    skips = [{"id": check, "comment": reason} for check, reason in reasons.items()]
    template_part.add_metadata("checkov", {"skip": [*before, *skips]})


def skip_in_functions_of_the_cdk(stack: Stack) -> None:
    """What checkov finds in the functions that the CDK's own constructs have put into a stack so far."""
    for child in stack.node.children:
        if child.node.id.startswith("Custom::") and (handler := child.node.try_find_child("Handler")):
            skip(handler, dict.fromkeys(("CKV_AWS_115", "CKV_AWS_116", "CKV_AWS_117"), _DURING_DEPLOYMENT))


_DURING_DEPLOYMENT = (
    "The CDK's own function, which CloudFormation calls while it deploys: one call at a time, whose "
    "answer it waits for. The function calls nothing but AWS's interfaces."
)
