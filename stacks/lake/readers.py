"""Grant access to the silver tables through Lake Formation."""

from __future__ import annotations

import hashlib

from aws_cdk import Aws
from aws_cdk import aws_glue as glue
from aws_cdk import aws_lakeformation as lakeformation

from stacks.base import TributaryStack

_Permissions = lakeformation.CfnPrincipalPermissions


def grant_readers(stack: TributaryStack, database: glue.CfnDatabase, name: str) -> None:
    """Grant SELECT on all tables of the database `name` to each of `[aws.storage].readers`.

    The principal that deploys must be an administrator of Lake Formation. Readers read the files with their
    own permissions on the bucket, because the bucket is not registered as a data lake location.
    """
    for reader in stack.aws.storage.readers:
        digest = hashlib.sha256(reader.encode()).hexdigest()[:8]
        for what, resource, permissions in (
            ("Database", _database(name), ["DESCRIBE"]),
            ("Tables", _all_tables(name), ["DESCRIBE", "SELECT"]),
        ):
            grant = _Permissions(
                stack,
                f"{what}Of{digest}",
                catalog=Aws.ACCOUNT_ID,
                principal=_Permissions.DataLakePrincipalProperty(data_lake_principal_identifier=reader),
                resource=resource,
                permissions=permissions,
                permissions_with_grant_option=[],
            )
            grant.add_resource_dependency(database)


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
