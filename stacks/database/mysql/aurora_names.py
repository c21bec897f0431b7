"""Which versions and instance classes Aurora MySQL has. The CDK lists the versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from aws_cdk import aws_rds as rds

from stacks.database.aurora_classes import MYSQL_FAMILIES, database_classes
from stacks.database.engine import NameOnAws
from tributary.contract.engines.mysql import AuroraMySql

FIRST_WITH_DATA_API = (3, 7)
"""Aurora user guide, "Supported Regions and Aurora DB engines for RDS Data API", November 2026."""


def aurora_names(database: AuroraMySql) -> Iterator[NameOnAws]:
    """Yield the names in `[aws.mysql]` that Aurora has to know."""
    version, instance = database.engine_version, database.instance
    known = "a version of Aurora MySQL with the Data API"
    yield NameOnAws("mysql.engine_version", version, aurora_versions(), known)
    yield NameOnAws("mysql.instance", instance, database_classes(MYSQL_FAMILIES), "a class of Aurora MySQL")


@cache
def aurora_versions() -> frozenset[str]:
    """Return the versions: `VER_3_10_3` of the CDK is 3.10.3, and `VER_3_08_2` is 3.08.2."""
    names = (re.fullmatch(r"VER_(\d+)_(\d+)_(\d+)", name) for name in dir(rds.AuroraMysqlEngineVersion))
    return frozenset(
        f"{name[1]}.{name[2]}.{name[3]}"
        for name in names
        if name and (int(name[1]), int(name[2])) >= FIRST_WITH_DATA_API
    )
