"""Acknowledge a finding of a security check next to the resource that causes it, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge findings of cdk-nag for a construct and its children.

    `reasons` are by the finding's whole id, such as `AwsSolutions-IAM5[Resource::*]`. A reason names the
    mechanism that makes the finding harmless here.
    """
    Validations.of(construct).acknowledge(
        *(Acknowledgment(id=finding, reason=reason) for finding, reason in reasons.items())
    )


def skip(resource: IConstruct, reasons: Mapping[str, str]) -> None:
    """Skip checks of checkov for a resource, or for the main resource of a construct.

    `reasons` are by checkov's check, such as CKV_AWS_115, and are worded as in `acknowledge`.
    """
    template_part = resource if isinstance(resource, CfnResource) else resource.node.default_child
    assert isinstance(template_part, CfnResource)
    before = (template_part.get_metadata("checkov") or {"skip": []})["skip"]
    skips = [{"id": check, "comment": reason} for check, reason in reasons.items()]
    template_part.add_metadata("checkov", {"skip": [*before, *skips]})


def acknowledge_function(
    function: IConstruct, *, no_reservation: str, no_dead_letters: str, no_vpc: str | None = None
) -> None:
    """Accept that a deployment's Lambda function has no reserved concurrency, dead-letter queue or VPC.

    Each argument is a reason. `no_vpc` is None for a function in the VPC.
    """
    packs = ("NIST.800.53.R5", "HIPAA.Security")
    acknowledge(function, {f"{pack}-LambdaConcurrency": no_reservation for pack in packs})
    acknowledge(function, {f"{pack}-LambdaDLQ": no_dead_letters for pack in packs})
    skip(function, {"CKV_AWS_115": no_reservation, "CKV_AWS_116": no_dead_letters})
    if no_vpc is not None:
        acknowledge(function, {f"{pack}-LambdaInsideVPC": no_vpc for pack in (*packs, "PCI.DSS.321")})
        skip(function, {"CKV_AWS_117": no_vpc})


def skip_in_functions_of_the_cdk(stack: Stack) -> None:
    """Skip checkov's findings in the functions that the CDK's own constructs have added to a stack so far."""
    for child in stack.node.children:
        if child.node.id.startswith("Custom::") and (handler := child.node.try_find_child("Handler")):
            skip(handler, dict.fromkeys(("CKV_AWS_115", "CKV_AWS_116", "CKV_AWS_117"), _DURING_DEPLOYMENT))


_DURING_DEPLOYMENT = (
    "The CDK's own function. CloudFormation calls it during a deployment, one call at a time, and waits for "
    "the answer. The function calls only AWS's APIs."
)
