"""A policy that the lake file has changed since the table got its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.table_columns import APP_COLUMNS, DELETED
from spark_app.hudi.hudi_table import StoredAs
from tributary.contract.errors import TributaryError
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import Ingest


class PolicyChanged(TributaryError):
    """The lake file asks for another layout than the one in which the table is stored."""


def check_layout(path: str, stored: StoredAs, buckets: int | None, policy: TablePolicy) -> None:
    """Raise `PolicyChanged` if the table is stored in another way than the policy says.

    `buckets` is what the ledger recorded; None if it recorded none."""
    asked = StoredAs(policy.storage, tuple(map(str, policy.partitions)))
    found = _entries(stored, buckets or policy.buckets)
    expected = _entries(asked, policy.buckets)
    differing = [entry for entry in found if found[entry] != expected[entry]]
    if differing:
        raise PolicyChanged(
            what="The layout of a table that has rows cannot be changed, but the lake file asks for another",
            where=path,
            found=", ".join(found[entry] for entry in differing),
            expected=", ".join(expected[entry] for entry in differing),
            remedy=[
                "Change the lake file back. Or remove the table's folder, which also ends its history, and "
                "load the table from its events.",
                Ingest(events_from="bronze"),
            ],
        )


def _entries(stored: StoredAs, buckets: int) -> Mapping[str, str]:
    """Return the entries of the lake file that would give the layout, by name."""
    values = {"storage": stored.storage, "partition_by": stored.partition_by, "buckets": buckets}
    return {name: f"{name} = {json.dumps(value)}" for name, value in values.items()}


def has_other_deletes(stored: DataFrame, policy: TablePolicy) -> bool:
    """Return whether the table's rows are of the other kind of `deletes`: only soft ones have `_deleted`."""
    return (DELETED in stored.columns) != (policy.deletes == "soft")


def with_deletes_of(policy: TablePolicy, stored: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Return the stored rows as they would be if the policy had always applied to their deletes.

    Soft: the rows get `_deleted`, which is false. Rows that are gone stay gone. Hard: rows that are deleted
    go. `names` are the source's columns."""
    own = APP_COLUMNS.fieldNames()
    if policy.deletes == "soft":
        return stored.select(*own, F.lit(False).alias(DELETED), *names)
    return stored.where(~F.coalesce(DELETED, F.lit(False))).select(*own, *names)
