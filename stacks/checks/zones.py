"""Which availability zones have all of a lake's services, by their ids. A zone's name differs by account."""

from __future__ import annotations

from aws_cdk import Fn

from stacks.checks.refusal import entry_of
from tributary.contract.aws import Aws
from tributary.contract.errors import TributaryError

FITTING_ZONES = {
    "ap-northeast-1": ("apne1-az1", "apne1-az2", "apne1-az4"),
    "us-east-1": ("use1-az2", "use1-az4", "use1-az6", "use1-az1", "use1-az5"),
    "us-east-2": ("use2-az1", "use2-az2", "use2-az3"),
    "us-west-1": ("usw1-az1", "usw1-az3"),
    "us-west-2": ("usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4"),
}
"""The zones, best first, of regions where not every zone fits.

The US regions are those in "Endpoints and quotas for EMR Serverless" (November 2026). AWS::MSK::Cluster also
excludes use1-az3 for its ClientSubnets. In apne1-az3, AWS offers no NAT gateway to most accounts.
"""


def check_zones(aws: Aws) -> None:
    """Check the zones that the lake file names, or how many it asks for. Raise TributaryError."""
    fitting = FITTING_ZONES.get(aws.region)
    if fitting is None:
        return
    entry = entry_of("network.vpc.zones" if aws.network.vpc else "network.zones")
    for zone in aws.zone_ids:
        if zone not in fitting:
            raise TributaryError(
                "the zone does not have all services of a lake, such as Amazon MSK and EMR Serverless",
                where=entry,
                found=f'"{zone}"',
                expected=f"zones of {aws.region} that have them: {', '.join(sorted(fitting))}",
                remedy=_REMEDY_IN_EXISTING if aws.network.vpc else _REMEDY,
            )
    if aws.zone_count > len(fitting):
        raise TributaryError(
            "the region has too few availability zones for the lake",
            where="[aws.network].availability_zones",
            found=str(aws.zone_count),
            expected=f"{len(fitting)}, which are {' and '.join(fitting)}",
        )


_REMEDY = "Name another zone, or leave the entry out: Tributary then chooses zones that have them."
_REMEDY_IN_EXISTING = "Choose subnets of the VPC in other zones."


def zone_ids(aws: Aws) -> tuple[str, ...]:
    """Return the ids of the zones for the lake's own VPC. Return nothing if all zones of the region fit."""
    return aws.zone_ids or FITTING_ZONES.get(aws.region, ())[: aws.zone_count]


def zone_names(aws: Aws) -> list[str]:
    """Return references to the region's first zones, which CloudFormation looks up."""
    return [Fn.select(zone, Fn.get_azs()) for zone in range(aws.zone_count)]
