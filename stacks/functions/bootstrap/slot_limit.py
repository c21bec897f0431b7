"""Limit the log that a replication slot may hold back, if Aurora lets a cluster set the limit.

No public list says whether max_slot_wal_keep_size is a parameter of Aurora PostgreSQL. In a template, an
unknown parameter would fail the deployment.
"""

from __future__ import annotations

from typing import Any, Protocol

from botocore.exceptions import ClientError

PARAMETER = "max_slot_wal_keep_size"
_UNKNOWN = {"InvalidParameterValue", "InvalidParameterCombination"}


class Rds(Protocol):
    """The part of boto3's client `rds` that this module uses."""

    def modify_db_cluster_parameter_group(self, **request: Any) -> object: ...


def limit_slots(rds: Rds, parameter_group: str, megabytes: str) -> str | None:
    """Set the limit in a cluster's parameter group. Return a remark if Aurora has no such parameter.

    Raises ClientError for every other refusal.
    """
    value = {"ParameterName": PARAMETER, "ParameterValue": megabytes, "ApplyMethod": "immediate"}
    try:
        rds.modify_db_cluster_parameter_group(DBClusterParameterGroupName=parameter_group, Parameters=[value])
    except ClientError as error:
        if error.response["Error"].get("Code") not in _UNKNOWN:
            raise
        return f"Aurora cannot set {PARAMETER}, so only an alarm limits the log that a slot holds back"
    return None
