"""Estimate the hourly cost of a lake on AWS without data, from its templates and a list of prices.

python -m stacks.cost [cdk.out]
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stacks.synthesized import Resource, Templates, read_templates
from tributary.contract.errors import TributaryError

_PRICES = tomllib.loads(Path(__file__).with_name("prices.toml").read_text())
REGION, AS_OF = str(_PRICES["region"]), _PRICES["as_of"]


class NoPrice(LookupError):
    """stacks/prices.toml has no price for a resource in a template."""


@dataclass(frozen=True)
class Charge:
    """A charge for a number of equal units.

    least, most  the number of units at the minimum, and when everything is scaled out
    price        of one unit, in dollars an hour
    is_confirmed  whether stacks/prices.toml names a source of the price
    """

    stack: str
    what: str
    least: float
    most: float
    price: float
    is_confirmed: bool


def charges(templates: Templates) -> list[Charge]:
    """Return the charges of the templates, in the order of their stacks. Raise NoPrice."""
    return [
        Charge(stack, what, least, most, price_of(what), is_confirmed(what))
        for stack, template in templates.items()
        for what, (least, most) in _sums(template["Resources"]).items()
    ]


def price_of(what: str) -> float:
    """Return the price in dollars: of an hour, or of a unit that is charged by use."""
    if what in _PRICES["hourly"]:
        return float(_PRICES["hourly"][what]["price"])
    if what in _PRICES["monthly"]:
        return float(_PRICES["monthly"][what]["price"]) / int(_PRICES["hours_in_a_month"])
    if what in _PRICES["used"]:
        return float(_PRICES["used"][what]["price"])
    raise NoPrice(f"stacks/prices.toml has no price for {what}")


def is_confirmed(what: str) -> bool:
    """Return whether the price has a source. Otherwise it was written down from memory."""
    entries = {**_PRICES["hourly"], **_PRICES["monthly"], **_PRICES["used"]}
    return "source" in entries[what]


NOT_COUNTED = "data: bytes stored and sent, requests, I/O, partitions, logs, metrics, queries"
"""What the sums leave out, because it depends on use."""


def sum_of(found: list[Charge]) -> tuple[float, float]:
    """Return the least and the most dollars an hour."""
    return sum(each.least * each.price for each in found), sum(each.most * each.price for each in found)


def as_table(found: list[Charge]) -> str:
    """Return a Markdown table of the charges, in dollars an hour. A price from memory has a question mark."""
    rows = [
        f"| {each.stack} | {each.what} | {_range(each.least, each.most)} | "
        f"{each.price:.4f}{'' if each.is_confirmed else ' ?'} | "
        f"{cents(each.least * each.price, each.most * each.price)} |"
        for each in found
    ]
    least, most = sum_of(found)
    return "\n".join(
        [
            "| Stack | What | How many | $/h each | $/h |",
            "|---|---|--:|--:|--:|",
            *rows,
            f"| **all** | | | | **{cents(least, most)}** |",
            f"| not counted | {NOT_COUNTED} | | | |",
        ]
    )


def _range(least: float, most: float) -> str:
    low, high = f"{least:g}", f"{most:g}"
    return low if low == high else f"{low} to {high}"


def cents(least: float, most: float | None = None) -> str:
    """Return dollars, rounded to cents. Below half a cent, say so rather than nothing."""
    both = (least, least if most is None else most)
    low, high = (f"{each:.2f}" if each == 0 or each >= 0.005 else "<0.01" for each in both)
    return low if low == high else f"{low} to {high}"


Counts = Iterator[tuple[str, float, float]]
"""Units that are charged, with their least and their most number."""


def _sums(resources: Mapping[str, Resource]) -> dict[str, tuple[float, float]]:
    sums: dict[str, tuple[float, float]] = {}
    for resource in resources.values():
        count = _CHARGED.get(resource["Type"])
        if count is None and not _FREE_OR_BY_USE.fullmatch(resource["Type"]):
            raise NoPrice(f"stacks/cost.py does not know whether {resource['Type']} costs anything")
        if count is not None:
            for what, least, most in count(resource.get("Properties", {}), resources):
                before = sums.get(what, (0.0, 0.0))
                sums[what] = (before[0] + least, before[1] + most)
    return sums


def _endpoint(properties: Resource, _: Mapping[str, Resource]) -> Counts:
    if properties["VpcEndpointType"] == "Interface":
        zones = len(properties["SubnetIds"])
        yield "interface-endpoint", zones, zones


def _database(properties: Resource, resources: Mapping[str, Resource]) -> Counts:
    """Count an instance, and its volume if it has one of its own. A standby costs as much again."""
    if "AllocatedStorage" in properties:
        each = 2 if properties.get("MultiAZ") else 1
        yield f"{properties['Engine']} {properties['DBInstanceClass']}", each, each
        size = int(properties["AllocatedStorage"])
        yield "database-gigabyte", each * size, each * int(properties.get("MaxAllocatedStorage", size))
        return
    if properties["DBInstanceClass"] != "db.serverless":
        yield properties["DBInstanceClass"], 1, 1
        return
    cluster = resources[properties["DBClusterIdentifier"]["Ref"]]["Properties"]
    capacity = cluster["ServerlessV2ScalingConfiguration"]
    yield "aurora-capacity-unit", capacity["MinCapacity"], capacity["MaxCapacity"]


def _kafka(properties: Resource, resources: Mapping[str, Resource]) -> Counts:
    brokers, nodes = properties["NumberOfBrokerNodes"], properties["BrokerNodeGroupInfo"]
    yield nodes["InstanceType"], brokers, brokers
    if "StorageInfo" in nodes:
        size = nodes["StorageInfo"]["EBSStorageInfo"]["VolumeSize"]
        grown = [
            each["Properties"]["MaxCapacity"]
            for each in resources.values()
            if each["Type"] == "AWS::ApplicationAutoScaling::ScalableTarget"
        ]
        yield "kafka-storage-gigabyte", brokers * size, brokers * max([size, *grown])


def _connector(properties: Resource, _: Mapping[str, Resource]) -> Counts:
    capacity = properties["Capacity"]
    if "AutoScaling" in capacity:
        scaled = capacity["AutoScaling"]
        units = scaled["McuCount"]
        yield "connect-unit", units * scaled["MinWorkerCount"], units * scaled["MaxWorkerCount"]
    else:
        units = capacity["ProvisionedCapacity"]["McuCount"] * capacity["ProvisionedCapacity"]["WorkerCount"]
        yield "connect-unit", units, units


def _emr(properties: Resource, _: Mapping[str, Resource]) -> Counts:
    """Count the nodes of a cluster. Spot instances count at the on-demand price, which they stay below."""
    instances, limits = properties["Instances"], properties["ManagedScalingPolicy"]["ComputeLimits"]
    tasks = [*instances.get("TaskInstanceGroups", ()), *instances.get("TaskInstanceFleets", ())]
    nodes = [("Master", 0)]
    nodes.append(("Core", 0 if tasks else limits["MaximumCapacityUnits"] - limits["MinimumCapacityUnits"]))
    for kind, more in nodes:
        group = instances.get(f"{kind}InstanceGroup") or instances[f"{kind}InstanceFleet"]
        count = _nodes(group)
        yield from _node(group, count, count + more)
    for group in tasks:
        count = _nodes(group)
        yield from _node(
            group, count, max(count, limits["MaximumCapacityUnits"] - limits["MinimumCapacityUnits"])
        )


def _nodes(group: Resource) -> int:
    if "InstanceCount" in group:
        return int(group["InstanceCount"])
    return int(group.get("TargetOnDemandCapacity", 0)) + int(group.get("TargetSpotCapacity", 0))


def _node(group: Resource, least: int, most: int) -> Counts:
    """Count nodes and their disks. For a fleet, use its most expensive instance type."""
    types = group.get("InstanceTypeConfigs", [group])
    dearest = max(types, key=lambda each: price_of(each["InstanceType"]))
    yield dearest["InstanceType"], least, most
    disks = dearest.get("EbsConfiguration", {}).get("EbsBlockDeviceConfigs", ())
    size = sum(disk["VolumeSpecification"]["SizeInGB"] for disk in disks)
    yield "disk-gigabyte", least * size, most * size


def _emr_serverless(properties: Resource, _: Mapping[str, Resource]) -> Counts:
    """Count nothing without a job, and at most the capacity that jobs may use at once."""
    most, architecture = properties["MaximumCapacity"], properties["Architecture"].lower()
    yield f"emr-serverless-{architecture}-processor", 0, _number(most["Cpu"])
    yield f"emr-serverless-{architecture}-gigabyte", 0, _number(most["Memory"])


def _number(text: str) -> float:
    """Return the number in a size such as "8 vCPU"."""
    return float(text.split()[0])


def _each(what: str) -> Callable[[Resource, Mapping[str, Resource]], Counts]:
    def count(_: Resource, __: Mapping[str, Resource]) -> Counts:
        yield what, 1, 1

    return count


def _instance(properties: Resource, _: Mapping[str, Resource]) -> Counts:
    yield properties["InstanceType"], 1, 1
    disks = sum(each["Ebs"]["VolumeSize"] for each in properties["BlockDeviceMappings"])
    yield "disk-gigabyte", disks, disks


def _stream(properties: Resource, _: Mapping[str, Resource]) -> Counts:
    if properties.get("StreamModeDetails", {}).get("StreamMode") == "ON_DEMAND":
        yield "kinesis-on-demand-stream", 1, 1
    else:
        yield "kinesis-shard", properties["ShardCount"], properties["ShardCount"]


_CHARGED: Mapping[str, Callable[[Resource, Mapping[str, Resource]], Counts]] = {
    "AWS::CloudWatch::Alarm": _each("alarm"),
    "AWS::CloudWatch::Dashboard": _each("dashboard"),
    "AWS::EC2::Instance": _instance,
    "AWS::EC2::EIP": _each("public-ipv4-address"),
    "AWS::EC2::NatGateway": _each("nat-gateway"),
    "AWS::EC2::VPCEndpoint": _endpoint,
    "AWS::EMR::Cluster": _emr,
    "AWS::EMRServerless::Application": _emr_serverless,
    "AWS::KMS::Key": _each("key"),
    "AWS::KafkaConnect::Connector": _connector,
    "AWS::Kinesis::Stream": _stream,
    "AWS::MSK::Cluster": _kafka,
    "AWS::MSK::ServerlessCluster": _each("msk-serverless-cluster"),
    "AWS::RDS::DBInstance": _database,
    "AWS::SecretsManager::Secret": _each("secret"),
}

_FREE_OR_BY_USE = re.compile(
    r"Custom::.+|AWS::(CDK|IAM|Budgets|DynamoDB|Glue|Logs|Lambda|S3|SNS|SQS|Athena|LakeFormation|CloudFormation|Events|Scheduler|CodeBuild|QuickSight|"
    r"ApplicationAutoScaling|Serverless|SSM|StepFunctions)::.+"
    r"|AWS::EC2::(LaunchTemplate|VPC|Subnet.*|Route.*|InternetGateway|VPCGatewayAttachment|SecurityGroup.*|FlowLog)"
    r"|AWS::KafkaConnect::(CustomPlugin|WorkerConfiguration)|AWS::MSK::(Configuration|Topic|ClusterPolicy)"
    r"|AWS::RDS::DB(Cluster|SubnetGroup|(Cluster)?ParameterGroup)|AWS::KMS::Alias"
    r"|AWS::SecretsManager::(ResourcePolicy|RotationSchedule|SecretTargetAttachment)"
    r"|AWS::EMR::(SecurityConfiguration|Studio)|AWS::CloudWatch::(CompositeAlarm|AnomalyDetector)"
)
"""The types of resources that are free or are charged only by use: bytes stored, read, written or sent."""


def main() -> None:
    try:
        templates = read_templates(Path(sys.argv[1] if len(sys.argv) > 1 else "cdk.out"))
        print(as_table(charges(templates)))
    except (NoPrice, TributaryError) as error:
        sys.exit(str(error))
    print(f"\nList prices of {REGION} as of {AS_OF}. A question mark: unconfirmed. See docs/cost.md.")


if __name__ == "__main__":
    main()
