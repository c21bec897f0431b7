"""A Glue server in the tests' own process, as a client sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_app.catalog.sync import CatalogPace

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

DATABASE = "shop_silver"
FAST = CatalogPace(first_retry_seconds=0.01, longest_retry_seconds=0.02, patience_seconds=5.0)


@dataclass
class Glue:
    """A Glue server, its database as a client sees it, and the requests that it has received."""

    client: GlueClient
    requests: list[str] = field(default_factory=list)

    def columns(self, table: str) -> dict[str, str]:
        found = self.client.get_table(DatabaseName=DATABASE, Name=table)["Table"]
        shown = {column["Name"]: column["Type"] for column in found["StorageDescriptor"]["Columns"]}
        return {name: data_type for name, data_type in shown.items() if not name.startswith("_")}

    def partitions(self, table: str) -> dict[tuple[str, ...], int]:
        """Return the values of each partition, and its number of columns."""
        found = self.client.get_partitions(DatabaseName=DATABASE, TableName=table)["Partitions"]
        return {tuple(p["Values"]): len(p["StorageDescriptor"]["Columns"]) for p in found}

    def fail(self, times: int) -> None:
        """Make the next requests fail as if there were no server."""
        left = [ConnectionRefusedError("Glue is away")] * times

        def refuse(**_: object) -> None:
            if left:
                raise left.pop()

        self.client.meta.events.register_first("before-send.glue", refuse)
