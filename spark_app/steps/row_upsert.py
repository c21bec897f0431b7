"""A writer of a commit's files that knows the table's buckets."""

from __future__ import annotations

from typing import NewType, Protocol

from pyspark.sql import DataFrame

HudiClient = NewType("HudiClient", object)
"""An opaque handle of Hudi's write client."""

HudiMetaClient = NewType("HudiMetaClient", object)
"""An opaque handle of Hudi's client of a table's metadata."""

WriteStats = NewType("WriteStats", object)
"""An opaque handle of Hudi's statistics of the written files."""


class RowUpsert(Protocol):
    """The writer of one table with simple buckets. It remembers the files of its last commit.

    Rows have the table's columns in any order: the record key `string`, the ordering column `bigint`, the
    operation `string` if deletes are hard, and columns of any Spark type except intervals. There is one row
    per key. In a copy-on-write table, it writes only the first commit."""

    def writer_schema(self, meta_client: HudiMetaClient, rows: DataFrame) -> str:
        """Return the Avro schema, as JSON, to write the rows in: their own, aligned with the last commit's.

        The client's timeline must be the one from before the commit begins."""

    def write_in_tasks(
        self,
        client: HudiClient,
        meta_client: HudiMetaClient,
        instant: str,
        rows: DataFrame,
        tasks: int,
    ) -> WriteStats:
        """Send each row to the task of its file group, and write it there. There are `tasks` tasks.

        The instant is a requested one of the client, and the client's configuration has the writer schema.
        The caller has to commit the result. After an error, Hudi's next commit rolls back what was written.
        """

    def write_in_buckets(
        self, client: HudiClient, meta_client: HudiMetaClient, instant: str, rows: DataFrame
    ) -> WriteStats:
        """Do the same as `write_in_tasks` with rows that are in the tasks of their `Buckets`.

        A task's rows must be grouped by bucket. Otherwise it raises an error."""

    def committed(self, written: WriteStats) -> None:
        """Note that the last written files are committed, so the next commit need not list files."""
