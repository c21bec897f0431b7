"""What a listing says of a table's files and compactions."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from tributary.api.table_files import TableFiles, table_files

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


def listed(name: str, size: int = 0) -> Any:
    return SimpleNamespace(
        path=f"silver/web/orders/{name}", base_name=name.rpartition("/")[2], size=size, mtime=WHEN
    )


FILES = [
    listed("00000001-abc-0_0-1-1_20260102030400000.parquet", 100),
    listed(".00000001-abc-0_20260102030400000.log.1_0-1-1", 7),
    listed("region=eu/.00000002-abc-0_20260102030400000.log.1_0-1-1", 8),
    listed(".hoodie_partition_metadata", 96),
    listed(".hoodie/20260102030400000.commit", 5),
    listed(".hoodie/20260102030400000.compaction.requested"),
    listed(".hoodie/20260102030500000.compaction.requested"),
    listed(".hoodie/20260102030600000.deltacommit", 5),
]


def test_a_merge_on_read_table_has_log_files_and_compactions() -> None:
    found = table_files(FILES, "silver/web/orders", "merge_on_read")
    assert found == TableFiles(1, 2, 100, 15, WHEN, pending=1)


def test_a_commit_of_a_copy_on_write_table_is_no_compaction() -> None:
    found = table_files(FILES[:1] + FILES[4:5], "silver/web/orders", "copy_on_write")
    assert found == TableFiles(1, 0, 100, 0, None, pending=0)
