"""No command claims that an item was erased while bronze still has its records."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from spark_app.positions.dynamodb import ItemLog
from spark_app.sources.bronze import BronzeSource
from spark_app.table.erase import NotErased, erase_keys
from spark_app.table.table_ingest import TableIngest
from tributary.contract.item_stream import ItemRules


def test_the_keys_of_a_table_of_items_are_refused_before_anything_changes(tmp_path: Path) -> None:
    source, hudi = mock.Mock(spec=BronzeSource), mock.Mock()
    table = TableIngest(
        name="shop.dynamodb.orders",
        topic="orders",
        source=source,
        hudi=hudi,
        quarantine_path=str(tmp_path),
        log=ItemLog(),
        items=ItemRules(),
        deleted_path=str(tmp_path),
    )
    before = len(hudi.method_calls), len(source.method_calls)
    with pytest.raises(NotErased, match=r"(?s)shop\.dynamodb\.orders.*stay in bronze"):
        erase_keys(table, [{"id": "7"}])
    assert (len(hudi.method_calls), len(source.method_calls)) == before
