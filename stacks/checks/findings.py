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


def acknowledge_function(
    function: IConstruct, *, no_reservation: str, no_dead_letters: str, no_vpc: str | None = None
) -> None:
    """Why a Lambda function of a deployment has no concurrency reserved, no queue of failed calls, and no
    place in the VPC; `no_vpc` None: it is in the VPC."""
    packs = ("NIST.800.53.R5", "HIPAA.Security")
    acknowledge(function, {f"{pack}-LambdaConcurrency": no_reservation for pack in packs})
    acknowledge(function, {f"{pack}-LambdaDLQ": no_dead_letters for pack in packs})
    skip(function, {"CKV_AWS_115": no_reservation, "CKV_AWS_116": no_dead_letters})
    if no_vpc is not None:
        acknowledge(function, {f"{pack}-LambdaInsideVPC": no_vpc for pack in (*packs, "PCI.DSS.321")})
        skip(function, {"CKV_AWS_117": no_vpc})


def skip_in_functions_of_the_cdk(stack: Stack) -> None:
    """What checkov finds in the functions that the CDK's own constructs have put into a stack so far."""
    for child in stack.node.children:
        if child.node.id.startswith("Custom::") and (handler := child.node.try_find_child("Handler")):
            skip(handler, dict.fromkeys(("CKV_AWS_115", "CKV_AWS_116", "CKV_AWS_117"), _DURING_DEPLOYMENT))


_DURING_DEPLOYMENT = (
    "The CDK's own function, which CloudFormation calls while it deploys: one call at a time, whose "
    "answer it waits for. The function calls nothing but AWS's interfaces."
)
