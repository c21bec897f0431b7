"""If a process ends at any request to S3, the next process makes the table equal its source."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import get_args

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi import timeline
from tests.faults.injected import Injected
from tests.faults.lake_on_s3 import LakeTable, Storage
from tests.faults.operations import OPERATIONS, Operation
from tests.faults.s3_faults import Moment, Point
from tests.soak import SOAKS
from tributary.contract.lake import TablePolicy

CASES: tuple[tuple[Operation, Point, Moment], ...] = tuple(
    (operation, point, moment)
    for operation in OPERATIONS
    for point in operation.points
    for moment in get_args(Moment)
)
IN_SHORT = CASES[15::19]
"""Tables with none or one of each operation, including an interrupted rollback."""

Prepared = Callable[[Operation], LakeTable]


@pytest.fixture(scope="module")
def prepared(spark: SparkSession, s3: Storage) -> Iterator[Prepared]:
    """A new table for each call, prepared for the operation."""
    tables: dict[str, LakeTable] = {}
    copies = 0

    def prepare(operation: Operation) -> LakeTable:
        nonlocal copies
        if operation.name not in tables:
            policy = TablePolicy(history=timedelta(0), longest_query=timedelta(0))
            tables[operation.name] = LakeTable(spark, s3, operation.name.replace(" ", "-"), policy)
            operation.prepare(tables[operation.name])
            tables[operation.name].end_process()
        copies += 1
        original = tables[operation.name]
        return original.copied_as(f"{original.name}-{copies}", copy.deepcopy(original.source))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeline, "ACTIVE_COMMITS", 3)
        yield prepare


@pytest.mark.parametrize(
    ("operation", "point", "moment"),
    CASES if SOAKS else IN_SHORT,
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_after_the_end_of_a_process_the_next_one_makes_the_table_equal_its_source(
    prepared: Prepared, injected: list[Injected], operation: Operation, point: Point, moment: Moment
) -> None:
    table = prepared(operation)

    table.end_within(operation.run, point, moment)

    began = time.monotonic()
    table.transact(lambda source: source.insert(100, "after the end", "body"))
    table.catch_up()
    injected.append(Injected(f"app ended within: {operation.name}", time.monotonic() - began, table.harm()))
    table.check()
    operation.run(table)
    table.ingest.serve()
    table.check()
    assert table.temporary_files() == []
    assert table.quarantined() == sum(event.kind == "garbage" for event in table.source.events)
