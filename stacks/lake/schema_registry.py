"""Where a deployed lake's schemas are: AWS Glue's registry, or one of the user's own."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Aws
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from constructs import Construct

from connectors.avro_converter import converter_kind
from connectors.deployment import ApicurioAccess, ConfluentAccess, GlueAccess, RegistryAccess
from stacks.base import TributaryStack
from tributary.contract.schema_registry import Registry


def registry_access(stack: TributaryStack) -> RegistryAccess | None:
    """Return how the connectors reach the registry; None if no source writes Avro."""
    registry = stack.lake.registry
    if registry is None or converter_kind(stack.lake, here=False) is None:
        return None
    if registry.kind == "glue":
        return GlueAccess(_region(stack, registry), _name(stack, registry))
    assert registry.address is not None, "the lake file is checked: only Glue's registry has no address"
    access = ApicurioAccess if registry.kind == "apicurio" else ConfluentAccess
    return access(registry.address.rstrip("/"))


class LakeSchemaRegistry(Construct):
    """A registry of AWS Glue for the schemas of the lake's events, unless the lake file names one.

    Bronze keeps events forever, and nobody can read them without their schemas.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        registry = stack.lake.registry
        if registry is None or registry.kind != "glue" or registry.name is not None:
            return
        made = glue.CfnRegistry(
            self, "Registry", name=_name(stack, registry), description=f"Lake {stack.lake.name}: all events"
        )
        made.apply_removal_policy(stack.of_data)


def schema_reading(stack: TributaryStack) -> list[iam.PolicyStatement]:
    """Return the permissions to read schemas by the ids in events."""
    registry = stack.lake.registry
    if registry is None or registry.kind != "glue":
        return []
    # Glue knows no resource for a request with a version's id (developer guide, "Getting started with schema
    # registry", IAM examples for deserializers).
    return [iam.PolicyStatement(actions=["glue:GetSchemaVersion"], resources=["*"])]


def schema_writing(stack: TributaryStack) -> list[iam.PolicyStatement]:
    """Return the permissions to find a schema in the lake's registry, and to add it. Nothing is deleted."""
    registry = stack.lake.registry
    if registry is None or registry.kind != "glue":
        return []
    place = f"arn:{Aws.PARTITION}:glue:{_region(stack, registry)}:{Aws.ACCOUNT_ID}"
    name = _name(stack, registry)
    return [
        iam.PolicyStatement(
            actions=[
                "glue:CreateSchema",
                "glue:GetSchemaByDefinition",
                "glue:PutSchemaVersionMetadata",
                "glue:QuerySchemaVersionMetadata",
                "glue:RegisterSchemaVersion",
            ],
            resources=[f"{place}:registry/{name}", f"{place}:schema/{name}/*"],
        ),
        *schema_reading(stack),
    ]


def reading_findings(stack: TributaryStack) -> Mapping[str, str]:
    """Return why `schema_reading` is for any resource, by the finding's id."""
    if not schema_reading(stack):
        return {}
    return {
        "AwsSolutions-IAM5[Resource::*]": (
            "An event holds only the id of its schema, and Glue checks a request by id against no resource."
        )
    }


def writing_findings(stack: TributaryStack) -> Mapping[str, str]:
    """Return why `schema_writing` is for all schemas of the registry, by the finding's id."""
    registry = stack.lake.registry
    if registry is None or not schema_writing(stack):
        return {}
    place = f"arn:<AWS::Partition>:glue:{_region(stack, registry)}:<AWS::AccountId>"
    reason = "Each table's topic has its own schema, and new tables come without a deployment."
    finding = f"AwsSolutions-IAM5[Resource::{place}:schema/{_name(stack, registry)}/*]"
    return {finding: reason, **reading_findings(stack)}


def _name(stack: TributaryStack, registry: Registry) -> str:
    return registry.name or stack.names.resource


def _region(stack: TributaryStack, registry: Registry) -> str:
    return registry.region or stack.aws.region
