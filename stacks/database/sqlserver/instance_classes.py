"""Which versions and instance classes Amazon RDS has for SQL Server. The CDK lists the versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from aws_cdk import aws_rds as rds

from stacks.database.engine import NameOnAws
from tributary.contract.engines.sqlserver import RdsSqlServer

_TO_8 = ("xlarge", "2xlarge", "4xlarge", "8xlarge")
_TO_16 = (*_TO_8, "12xlarge", "16xlarge")
_TO_24 = (*_TO_16, "24xlarge")
_OF_Z1D = ("xlarge", "2xlarge", "3xlarge", "6xlarge", "12xlarge")

STANDARD: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("m5", "m5d", "r5", "r5b", "r5d"), ("large", *_TO_24)),
    **dict.fromkeys(("m6i", "r6i"), ("large", *_TO_8)),
    **dict.fromkeys(("m7i", "r7i"), ("large", *_TO_16)),
    "t3": ("xlarge", "2xlarge"),
    "x2iedn": _TO_8,
    "z1d": ("large", *_OF_Z1D),
}
"""The sizes by family, without families that are older, or that few regions have (Amazon RDS user guide, "DB
instance class support for SQL Server", November 2026). Express and Web have smaller classes, but no CDC."""

ENTERPRISE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("m5", "m5d", "r5", "r5d"), _TO_24),
    "m6i": (*_TO_24, "32xlarge"),
    "r6i": ("large", *_TO_24, "32xlarge"),
    **dict.fromkeys(("m7i", "r7i"), (*_TO_24, "48xlarge")),
    "r5b": ("large", *_TO_24),
    "t3": ("xlarge", "2xlarge"),
    "x2iedn": (*_TO_8, "16xlarge", "24xlarge", "32xlarge"),
    "z1d": _OF_Z1D,
}
"""The same page."""

_EDITIONS = {"standard": STANDARD, "enterprise": ENTERPRISE}


def rds_names(database: RdsSqlServer) -> Iterator[NameOnAws]:
    """Yield the names in `[aws.sqlserver]` that Amazon RDS has to know."""
    edition = database.edition
    version, instance = database.engine_version, database.instance
    yield NameOnAws(
        "sqlserver.engine_version", version, rds_versions(), "a version of SQL Server on Amazon RDS"
    )
    expected = f"a class of Amazon RDS for SQL Server, edition {edition}"
    yield NameOnAws("sqlserver.instance", instance, classes_of(edition), expected)


@cache
def classes_of(edition: str) -> frozenset[str]:
    """Return the instance classes of an edition."""
    return frozenset(f"db.{family}.{size}" for family, sizes in _EDITIONS[edition].items() for size in sizes)


@cache
def rds_versions() -> frozenset[str]:
    """Return the versions: `VER_16_00_4236_2_V1` of the CDK is 16.00.4236.2.v1."""
    names = (re.fullmatch(r"VER_(\d+_\d+_\d+_\d+)_V(\d)", name) for name in dir(rds.SqlServerEngineVersion))
    return frozenset(f"{name[1].replace('_', '.')}.v{name[2]}" for name in names if name)
