"""A table without rows is named, although the lake cannot have it yet."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from connectors.engines.definitions import ColumnDefinition, TableDefinition
from tributary.api.tables import unknown_table
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName
from tributary.local.running import PipelineDown
from tributary.operations import rowless_tables as module
from tributary.operations.rowless_tables import NoRowYet, as_rowless, rowless_tables
from tributary.operations.snapshots.record_files import Look, RecordFiles
from tributary.operations.sourced_lake import SourcedLake

LAKE = parse_lake(
    '[lake]\nname = "lake"\n\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\ntables = ["public.*"]\n'
)
EMPTY, ON_ITS_WAY, STORED, GONE = (
    TableName("shop", "public", name) for name in ("nothing_yet", "on_its_way", "stored", "gone")
)
DEFINITION = TableDefinition("1", "a", (ColumnDefinition("id", "1", "int"),))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourcedLake:
    """A lake after a look, in which one table has events and one has rows."""
    (tmp_path / "quarantine" / "_definitions").mkdir(parents=True)
    (tmp_path / "silver/shop/public/stored").mkdir(parents=True)
    filesystem = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    look = Look(dict.fromkeys((EMPTY, ON_ITS_WAY, STORED), DEFINITION), frozenset({GONE}))
    RecordFiles(filesystem, LAKE.names, "quarantine").write_look("shop", look)
    monkeypatch.setattr(module, "known_tables", lambda _: (ON_ITS_WAY, STORED, GONE))
    files = SimpleNamespace(filesystem=filesystem)
    opened = SimpleNamespace(files=files, lake=LAKE, quarantine="quarantine", silver="silver")
    return cast(SourcedLake, SimpleNamespace(lake=LAKE, open_lake=opened))


def test_a_table_that_never_had_a_row_is_named_and_no_other_one(lake: SourcedLake) -> None:
    assert rowless_tables(lake) == (EMPTY,)


def test_a_query_of_a_table_without_rows_says_when_the_lake_gets_it(lake: SourcedLake) -> None:
    found = as_rowless(lake, unknown_table("nothing_yet", [STORED]))
    assert isinstance(found, NoRowYet)
    assert "shop.public.nothing_yet has not had a row" in str(found)
    other = unknown_table("stord", [STORED])
    assert as_rowless(lake, other) is other


def test_nobody_calls_a_table_rowless_while_kafka_is_away(
    lake: SourcedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known(_: Any) -> tuple[TableName, ...]:
        raise PipelineDown("Kafka is down")

    monkeypatch.setattr(module, "known_tables", known)
    assert rowless_tables(lake) == ()
