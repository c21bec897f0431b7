"""A table is counted again only after it has changed, and a damaged file only costs a count."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests.console.views import ORDERS, USERS
from tributary.api.open_lake import TableSummary
from tributary.contract.table_name import TableName
from tributary.operations.row_counts import read_row_counts


@dataclass
class Counted:
    """A table, and its summary, that tells how often it was counted."""

    name: TableName
    last_instant: str
    rows: int
    uri: str = "s3://silver/orders"
    counts: int = field(default=0)

    @property
    def table(self) -> Counted:
        return self

    def count(self) -> int:
        self.counts += 1
        return self.rows


def read(path: Path, *tables: Counted) -> dict[TableName, int]:
    return dict(read_row_counts(path, cast("list[TableSummary]", list(tables))))


def test_only_a_table_with_a_new_instant_is_counted_again(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    orders, users = Counted(ORDERS, "1", 7), Counted(USERS, "1", 3)
    assert read(path, orders, users) == {ORDERS: 7, USERS: 3}
    orders.last_instant, orders.rows = "2", 8
    assert read(path, orders, users) == {ORDERS: 8, USERS: 3}
    assert (orders.counts, users.counts) == (2, 1)


def test_a_table_at_another_place_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    moved = Counted(ORDERS, "1", 5), Counted(ORDERS, "1", 6, uri="s3://other/orders")
    assert [read(path, one)[ORDERS] for one in moved] == [5, 6]


@pytest.mark.parametrize("content", ["", "{", '{"tables": {"web.public.orders": 7}}', "[]"])
def test_a_damaged_file_is_written_anew(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "counts.json"
    path.write_text(content)
    orders = Counted(ORDERS, "1", 7)
    assert [read(path, orders)[ORDERS] for _ in range(2)] == [7, 7]
    assert orders.counts == 1
    assert path.stat().st_mode & 0o777 == 0o600
