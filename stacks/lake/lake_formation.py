"""Grant permissions on the lake's catalog databases and tables through Lake Formation.

The principal that deploys must be an administrator of Lake Formation. The buckets are not registered as data
lake locations, so everybody uses their own permissions on the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Aws
from aws_cdk import aws_glue as glue
from aws_cdk import aws_lakeformation as lakeformation

from stacks.base import TributaryStack

_Permissions = lakeformation.CfnPrincipalPermissions


@dataclass(frozen=True)
class CatalogAccess:
    """The permissions of a principal on one catalog database and on all of its tables."""

    database: str
    on_database: tuple[str, ...]
    on_tables: tuple[str, ...]


def reading(database: str) -> CatalogAccess:
    """Return the permissions to query the tables of a database."""
    return CatalogAccess(database, ("DESCRIBE",), ("DESCRIBE", "SELECT"))


def writing_tables(database: str) -> CatalogAccess:
    """Return the permissions to create and update the tables of a database."""
    return CatalogAccess(
        database, ("CREATE_TABLE", "DESCRIBE"), ("ALTER", "DELETE", "DESCRIBE", "INSERT", "SELECT")
    )


def owning_tables(database: str) -> CatalogAccess:
    """Return the permissions to create, replace and drop the tables of a database."""
    tables = ("ALTER", "DELETE", "DESCRIBE", "DROP", "INSERT", "SELECT")
    return CatalogAccess(database, ("CREATE_TABLE", "DESCRIBE"), tables)


def grant_readers(stack: TributaryStack, database: glue.CfnDatabase, name: str) -> None:
    """Let each of `[aws.storage].readers` query all tables of the database `name`."""
    for reader in stack.aws.storage.readers:
        digest = hashlib.sha256(reader.encode()).hexdigest()[:8]
        for grant in _grants(stack, f"Of{digest}", reader, reading(name)):
            grant.add_resource_dependency(database)


def grant_role(
    stack: TributaryStack, whose: str, role_arn: str, accesses: Sequence[CatalogAccess]
) -> list[lakeformation.CfnPrincipalPermissions]:
    """Grant a role of the lake its accesses and return the grants.

    Without `[aws.storage].lake_formation` there are none: the role's IAM policy decides alone.
    """
    if not stack.aws.storage.lake_formation:
        return []
    return [
        grant
        for access in accesses
        for grant in _grants(stack, f"Of{whose}{_layer(access.database)}", role_arn, access)
    ]


def _layer(database: str) -> str:
    """Return the part of a construct's id for a database: `Silver` for shop_silver."""
    return database.rpartition("_")[2].title()


def _grants(
    stack: TributaryStack, suffix: str, principal: str, access: CatalogAccess
) -> list[lakeformation.CfnPrincipalPermissions]:
    return [
        _Permissions(
            stack,
            f"{what}{suffix}",
            catalog=Aws.ACCOUNT_ID,
            principal=_Permissions.DataLakePrincipalProperty(data_lake_principal_identifier=principal),
            resource=resource,
            permissions=list(permissions),
            permissions_with_grant_option=[],
        )
        for what, resource, permissions in (
            ("Database", _database(access.database), access.on_database),
            ("Tables", _all_tables(access.database), access.on_tables),
        )
    ]


def _database(name: str) -> lakeformation.CfnPrincipalPermissions.ResourceProperty:
    return _Permissions.ResourceProperty(
        database=_Permissions.DatabaseResourceProperty(catalog_id=Aws.ACCOUNT_ID, name=name)
    )


def _all_tables(name: str) -> lakeformation.CfnPrincipalPermissions.ResourceProperty:
    return _Permissions.ResourceProperty(
        table=_Permissions.TableResourceProperty(
            catalog_id=Aws.ACCOUNT_ID, database_name=name, table_wildcard={}
        )
    )
