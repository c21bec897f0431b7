"""A Delta table holds every value, and replaces nothing by accident."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.cli.test_export import ROWS
from tributary.cli.export_delta import DeltaMissing, write_delta
from tributary.cli.export_files import NotExported


def test_a_delta_table_holds_every_value_with_its_type(tmp_path: Path) -> None:
    write_delta(ROWS, tmp_path / "rows")
    found = pa.table(DeltaTable(tmp_path / "rows").to_pyarrow_table()).cast(ROWS.schema)
    assert found.drop(["ratio"]).sort_by("id").equals(ROWS.drop(["ratio"]))
    assert [one.name for one in tmp_path.iterdir()] == ["rows"]


def test_a_delta_table_gets_another_version_only_if_it_may(tmp_path: Path) -> None:
    write_delta(ROWS, tmp_path / "rows")
    with pytest.raises(NotExported, match="--overwrite"):
        write_delta(ROWS, tmp_path / "rows")
    write_delta(ROWS.select(["id"]).slice(0, 1), tmp_path / "rows", overwrite=True)
    now = DeltaTable(tmp_path / "rows")
    assert (now.version(), now.to_pyarrow_table().num_rows) == (1, 1)
    assert DeltaTable(tmp_path / "rows", version=0).to_pyarrow_table().num_rows == 3


def test_a_folder_that_is_no_delta_table_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "mine.txt").write_text("mine")
    with pytest.raises(NotExported, match="only a Delta table"):
        write_delta(ROWS, tmp_path / "rows", overwrite=True)
    assert (tmp_path / "rows" / "mine.txt").read_text() == "mine"


def test_rows_that_delta_cannot_hold_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(NotExported, match="cannot be written"):
        write_delta(pa.table({"n": pa.array([1], pa.duration("s"))}), tmp_path / "rows")
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(DeltaMissing, match=r"pip install 'tributary\[delta\]'"):
        write_delta(ROWS, tmp_path / "rows")
