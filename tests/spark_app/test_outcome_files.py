"""The reason for a table's problem is kept in a file that readers of the quarantine skip."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from spark_app.run.outcome import OUTCOME_FILE, Outcome
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.table.quarantine import read_quarantine
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import RebuildTable


def test_an_outcome_is_read_as_it_was_written_until_it_is_cleared(
    spark: SparkSession, tmp_path: Path
) -> None:
    files, folder = OutcomeFiles(spark), f"{tmp_path}/shop/public/orders"
    error = TributaryError(
        "zu groß", where="column ł", found="1", expected="2", remedy=["Rebuild it.", RebuildTable()]
    )
    outcome = Outcome.of("blocked", error, None, "shop.public.orders")

    assert files.read(folder) is None
    for written in (Outcome.of("retrying", OSError("away"), None, "shop.public.orders"), outcome):
        files.write(folder, written)
        assert files.read(folder) == written
    assert outcome.reason == "column ł: zu groß: found 1, expected 2."
    assert json.loads(Path(folder, OUTCOME_FILE).read_text())["remedies"] == [
        {"kind": "advice", "text": "Rebuild it."},
        {"kind": "rebuild_table", "table": "shop.public.orders"},
    ]
    assert read_quarantine(spark, folder, 0) is None

    files.clear(folder)
    assert files.read(folder) is None

    Path(folder, OUTCOME_FILE).write_text('{"of": "another version"}')
    assert files.read(folder) is None
