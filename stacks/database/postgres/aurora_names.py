"""Which versions and instance classes Aurora PostgreSQL has.

The CDK lists the versions, and the installed botocore lists EC2's sizes. The families are listed here, with
their source page and its month.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from aws_cdk import aws_rds as rds

from stacks.checks.instance_types import ec2_instance_types
from stacks.database.engine import NameOnAws
from tributary.contract.engines.postgres import AuroraPostgres

DATABASE_FAMILIES = frozenset({"r5", "r6g", "r6gd", "r6i", "r6id", "r7g", "r7i", "r8a", "r8g", "r8gd"})
"""Aurora user guide, DB instance classes for Aurora PostgreSQL, September 2026: those with
the Data API. Sizes are EC2's."""


def aurora_names(database: AuroraPostgres) -> Iterator[NameOnAws]:
    """Yield the names in `[aws.database]` that Aurora has to know."""
    version, instance = database.engine_version, database.instance
    yield NameOnAws("database.engine_version", version, aurora_versions(), "a version of Aurora")
    yield NameOnAws("database.instance", instance, database_classes(), "a class of Aurora PostgreSQL")


@cache
def database_classes() -> frozenset[str]:
    """Return the instance classes of a cluster's instances."""
    sizes = (name.partition(".") for name in ec2_instance_types())
    return frozenset({"db.serverless"}) | {
        f"db.{family}.{size}"
        for family, _, size in sizes
        if family in DATABASE_FAMILIES and not size.startswith(("medium", "metal"))
    }


@cache
def aurora_versions() -> frozenset[str]:
    """Return the versions: `VER_16_6` of the CDK is 16.6."""
    names = (re.fullmatch(r"VER_(\d+)_(\d+)", name) for name in dir(rds.AuroraPostgresEngineVersion))
    return frozenset(f"{name[1]}.{name[2]}" for name in names if name)
