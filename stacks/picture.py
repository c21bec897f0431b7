"""Draw the architecture from the templates: the resources, and who may write where by IAM policy.

python -m stacks.picture [cdk.out]
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stacks.synthesized import Resource, Templates, read_templates, rendered, resources_of
from tributary.contract.errors import TributaryError

_TABLE, _STREAM = "AWS::DynamoDB::Table", "AWS::Kinesis::Stream"
_WRITES = {"kafka-cluster:WriteData", "s3:PutObject", "glue:UpdateTable"}
_READS = {"kafka-cluster:ReadData", "s3:GetObject", "glue:GetTable", "kinesis:GetRecords", "dynamodb:Scan"}
_CLUSTERS = ("AWS::EMR::Cluster", "AWS::EMRServerless::Application")
_CONNECTOR = "AWS::KafkaConnect::Connector"
_CLUSTER, _INSTANCE = "AWS::RDS::DBCluster", "AWS::RDS::DBInstance"


@dataclass(frozen=True)
class Node:
    """A box of the picture. `id` has only letters and digits and is unique across stacks."""

    stack: str
    id: str
    kind: str
    label: str
    resource: Resource


@dataclass(frozen=True, order=True)
class Arrow:
    """The flow of data from one node to another."""

    source: str
    target: str


def as_mermaid(templates: Templates) -> str:
    """Return a flow chart that GitHub renders, with a box for each stack and arrows for the flow of data."""
    nodes = list(_nodes(templates))
    lines = ["flowchart LR"]
    for stack in templates:
        inside = [node for node in nodes if node.stack == stack]
        if inside:
            lines += [f"  subgraph {stack}", *(f'    {node.id}["{node.label}"]' for node in inside), "  end"]
    lines += [f"  {arrow.source} --> {arrow.target}" for arrow in sorted(set(_arrows(templates, nodes)))]
    return "\n".join(lines)


def _nodes(templates: Templates) -> Iterator[Node]:
    counted: Counter[tuple[str, str]] = Counter()
    for stack, logical_id, resource in resources_of(templates):
        kind, properties = resource["Type"], resource.get("Properties", {})
        label = _DRAWN[kind](properties) if kind in _DRAWN else None
        if label is not None:
            yield Node(stack, f"{stack}{logical_id}", kind, label, resource)
        elif kind in _COUNTED:
            counted[stack, kind] += 1
    for (stack, kind), count in counted.items():
        name = re.sub(r"\W", "", kind.removeprefix("AWS"))
        yield Node(stack, f"{stack}{name}", kind, f"{count} {_COUNTED[kind]}", {})


def _short(name: Any) -> str:
    """Return a bucket's name without account and region."""
    return rendered(name).split("-{AWS::AccountId}")[0]


def _cluster(of: Resource) -> str:
    name = of.get("DatabaseName", of["DBClusterIdentifier"])
    return f"{_ENGINES[of['Engine']]} {of['EngineVersion']}<br/>{name}"


def _instance(of: Resource) -> str | None:
    """Return the label of an instance that holds a database; None: it belongs to a cluster."""
    if "AllocatedStorage" not in of:
        return None
    return f"{_ENGINES[of['Engine']]} {of['EngineVersion']}<br/>{of['DBInstanceIdentifier']}"


_ENGINES = {
    "aurora-postgresql": "Aurora PostgreSQL",
    "aurora-mysql": "Aurora MySQL",
    "sqlserver-se": "RDS SQL Server Standard",
    "sqlserver-ee": "RDS SQL Server Enterprise",
}

_DRAWN: Mapping[str, Callable[[Resource], str | None]] = {
    _CLUSTER: _cluster,
    _INSTANCE: _instance,
    _TABLE: lambda of: f"DynamoDB table<br/>{of['TableName']}",
    _STREAM: lambda of: f"Kinesis stream<br/>{of['Name']}",
    "AWS::MSK::Cluster": lambda of: f"MSK: {of['NumberOfBrokerNodes']} brokers<br/>{of['ClusterName']}",
    "AWS::MSK::ServerlessCluster": lambda of: f"MSK Serverless<br/>{of['ClusterName']}",
    _CONNECTOR: lambda of: f"MSK Connect<br/>{of['ConnectorName']}",
    "AWS::S3::Bucket": lambda of: f"S3 bucket<br/>{_short(of['BucketName'])}",
    "AWS::Glue::Database": lambda of: f"Glue database<br/>{of['DatabaseInput']['Name']}",
    "AWS::Athena::WorkGroup": lambda of: f"Athena workgroup<br/>{of['Name']}",
    "AWS::EMR::Cluster": lambda of: f"EMR on EC2: {of['ReleaseLabel']}<br/>{of['Name']}",
    "AWS::EMRServerless::Application": lambda of: f"EMR Serverless: {of['ReleaseLabel']}<br/>{of['Name']}",
    "AWS::SNS::Topic": lambda of: f"SNS topic<br/>{rendered(of.get('TopicName', 'alarms'))}",
    "AWS::CloudWatch::Dashboard": lambda _: "CloudWatch dashboard",
}
_COUNTED = {
    "AWS::CloudWatch::Alarm": "CloudWatch alarms",
    "AWS::EC2::NatGateway": "NAT gateway(s)",
    "AWS::EC2::Subnet": "subnets",
    "AWS::EC2::VPCEndpoint": "VPC endpoint(s)",
}


def _arrows(templates: Templates, nodes: list[Node]) -> Iterator[Arrow]:
    databases = {node.id: node for node in nodes if node.kind in (_CLUSTER, _INSTANCE)}
    exports = dict(_exports(templates))
    for node in nodes:
        properties = node.resource.get("Properties", {})
        if node.kind == _CONNECTOR:
            host = rendered(properties["ConnectorConfiguration"].get("database.hostname", ""))
            if (database := exports.get(host)) in databases:
                yield Arrow(str(database), node.id)
        if node.kind == _CONNECTOR or node.kind in _CLUSTERS:
            yield from _by_rights(templates, nodes, node)
        if node.kind == _TABLE:
            target = rendered(properties["KinesisStreamSpecification"]["StreamArn"])
            yield from (
                Arrow(node.id, each.id)
                for each in nodes
                if target == f"{{{each.id.removeprefix(each.stack)}.Arn}}"
            )
        if node.kind == "AWS::CloudWatch::Alarm":
            yield from (Arrow(node.id, topic.id) for topic in nodes if topic.kind == "AWS::SNS::Topic")
        if node.kind == "AWS::Athena::WorkGroup":
            catalogs = [each for each in nodes if each.kind == "AWS::Glue::Database"]
            yield from (Arrow(catalog.id, node.id) for catalog in catalogs)


def _exports(templates: Templates) -> Iterator[tuple[str, str]]:
    """Yield the text of each import and the node that exports it."""
    for stack, template in templates.items():
        for output in template.get("Outputs", {}).values():
            match output:
                case {"Export": {"Name": name}, "Value": {"Fn::GetAtt": [logical_id, _]}}:
                    yield f"{{{rendered(name)}}}", f"{stack}{logical_id}"


def _by_rights(templates: Templates, nodes: list[Node], node: Node) -> Iterator[Arrow]:
    """Yield arrows to each target that the node may write to, and from each that it may only read."""
    writes: set[str] = set()
    reads: set[str] = set()
    for statement in _rights(templates, node):
        actions = {statement["Action"]} if isinstance(statement["Action"], str) else set(statement["Action"])
        on = statement["Resource"]
        for resource in on if isinstance(on, list) else [on]:
            targets = {target.id for target in nodes if _is_about(rendered(resource), target)}
            writes |= targets if actions & _WRITES else set()
            reads |= targets if actions & _READS else set()
    yield from (Arrow(node.id, target) for target in writes)
    yield from (Arrow(source, node.id) for source in reads - writes)


def _rights(templates: Templates, node: Node) -> Iterator[Mapping[str, Any]]:
    """Yield a connector's policy statements, by its role, or all statements of the processing stack."""
    role = rendered(node.resource["Properties"].get("ServiceExecutionRoleArn", "")).removesuffix(".Arn}")
    for resource in templates[node.stack]["Resources"].values():
        if resource["Type"] == "AWS::IAM::ManagedPolicy":
            roles = [rendered(each).removesuffix("}") for each in resource["Properties"].get("Roles", ())]
            if node.kind in _CLUSTERS or role in roles:
                yield from resource["Properties"]["PolicyDocument"]["Statement"]


def _is_about(arn: str, node: Node) -> bool:
    """Tell whether the ARN is the node's. Connectors' internal topics begin with two underscores."""
    properties = node.resource.get("Properties", {})
    match node.kind:
        case "AWS::MSK::Cluster" | "AWS::MSK::ServerlessCluster":
            return ":topic/" in arn and "/__" not in arn
        case "AWS::S3::Bucket":
            return f":s3:::{rendered(properties['BucketName'])}/" in arn
        case "AWS::Glue::Database":
            return arn.endswith(f":database/{properties['DatabaseInput']['Name']}")
        case kind if kind == _STREAM:
            return arn.endswith(f":stream/{properties['Name']}")
        case kind if kind == _TABLE:
            return fnmatchcase(properties["TableName"], arn.partition(":table/")[2])
    return False


def main() -> None:
    try:
        print(as_mermaid(read_templates(Path(sys.argv[1] if len(sys.argv) > 1 else "cdk.out"))))
    except TributaryError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
