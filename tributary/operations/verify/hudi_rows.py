"""A table of the lake as a verification reads it: the newest state, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tributary.api.lake_files import LakeFiles
from tributary.api.rows import read_schema, stream_rows
from tributary.api.tables import LakeTable
from tributary.api.timeline import read_last_commit
from tributary.contract.partitions import KeyPart


@dataclass(frozen=True)
class HudiRows:
    """`LakeRows` of a Hudi table.

    key_parts  the parts of its key that partition it, whose columns are left out
    """

    files: LakeFiles
    table: LakeTable
    key_parts: tuple[KeyPart, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        found = read_schema(self.files, self.table)
        parts = {part.name for part in self.key_parts}
        return pa.schema([field for field in found if field.name not in parts])

    def state(self) -> str:
        commit = read_last_commit(self.files.filesystem, self.table.path)
        return "" if commit is None else commit.instant

    def read(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in stream_rows(self.files, self.table, schema.names):
            found = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            yield from found.to_batches()
