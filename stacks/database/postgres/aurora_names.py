"""Which versions and instance classes Aurora PostgreSQL has. The CDK lists the versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from aws_cdk import aws_rds as rds

from stacks.database.aurora_classes import POSTGRES_FAMILIES, database_classes
from stacks.database.engine import NameOnAws
from tributary.contract.engines.postgres import AuroraPostgres


def aurora_names(database: AuroraPostgres) -> Iterator[NameOnAws]:
    """Yield the names in `[aws.database]` that Aurora has to know."""
    version, instance = database.engine_version, database.instance
    yield NameOnAws("database.engine_version", version, aurora_versions(), "a version of Aurora")
    yield NameOnAws(
        "database.instance", instance, database_classes(POSTGRES_FAMILIES), "a class of Aurora PostgreSQL"
    )


@cache
def aurora_versions() -> frozenset[str]:
    """Return the versions: `VER_16_6` of the CDK is 16.6."""
    names = (re.fullmatch(r"VER_(\d+)_(\d+)", name) for name in dir(rds.AuroraPostgresEngineVersion))
    return frozenset(f"{name[1]}.{name[2]}" for name in names if name)
