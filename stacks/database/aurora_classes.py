"""Which instance classes of Aurora a cluster with the Data API can have.

The installed botocore lists EC2's sizes. The families are listed here, with their source page and its month.
"""

from __future__ import annotations

from functools import cache

from stacks.checks.instance_types import ec2_instance_types
from tributary.contract.aurora import SERVERLESS

POSTGRES_FAMILIES = frozenset({"r5", "r6g", "r6gd", "r6i", "r6id", "r7g", "r7i", "r8a", "r8g", "r8gd"})
"""Aurora user guide, DB instance classes for Aurora PostgreSQL, September 2026: those with
the Data API. Sizes are EC2's."""
MYSQL_FAMILIES = frozenset({"r5", "r6g", "r6i", "r6id", "r7g", "r7i", "r8a", "r8g"})
"""The same page, for Aurora MySQL 3."""


@cache
def database_classes(families: frozenset[str]) -> frozenset[str]:
    """Return the instance classes of a cluster's instances."""
    sizes = (name.partition(".") for name in ec2_instance_types())
    return frozenset({SERVERLESS}) | {
        f"db.{family}.{size}"
        for family, _, size in sizes
        if family in families and not size.startswith(("medium", "metal"))
    }
