"""What the lake file says of a table's columns is checked against the columns that the table has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.table_problems import column_problems
from spark_app.columns.table_columns import APP_COLUMNS, DELETED
from tributary.contract.column_names import OWN_COLUMNS
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName

LAKE = """
[lake]
name = "shop"
[source.web]
engine = "postgres"
database = "web"
tables = ["public.*"]
[table."web.public.orders"]
partition_by = ["right(id, 1)"]
"""


def _problems(columns: Sequence[str], key: Sequence[str]) -> list[str]:
    name = TableName("web", "public", "orders")
    found = column_problems(parse_lake(LAKE), name, columns, key, "leave it out", PostgresNotReady)
    return [str(problem) for problem in found]


def test_a_part_of_the_key_is_taken() -> None:
    assert _problems(["id", "note"], ["id"]) == []


@pytest.mark.parametrize(
    ("columns", "key", "message"),
    [
        (["id", "code"], ["code"], "a part of a column that is not in the key: found right(id, 1)"),
        (["code"], ["code"], "a column that does not exist: found id, expected one of code"),
        (["id", "id__right_1"], ["id"], "with the name of the lake's partition column: found id__right_1"),
    ],
)
def test_a_part_that_the_table_cannot_have_is_told_before_the_start(
    columns: Sequence[str], key: Sequence[str], message: str
) -> None:
    (problem,) = _problems(columns, key)
    assert '[table."web.public.orders"].partition_by' in problem
    assert message in problem


@pytest.mark.parametrize("column", ["_op", "_deleted", "größe", "_hoodie_x"])
def test_a_column_that_no_lake_table_has_keeps_its_table_out_unless_it_is_left_out(
    column: str,
) -> None:
    name, key = TableName("web", "public", "other"), ["id"]

    def problems(lake: str) -> list[str]:
        found = column_problems(parse_lake(lake), name, ["id", column], key, "leave it out", PostgresNotReady)
        return [str(problem) for problem in found]

    (problem,) = problems(LAKE)
    assert f"found {column!r}, expected letters A to Z" in problem
    assert 'leave it out with leave_out in [table."web.public.other"], or leave it out.' in problem
    assert problems(f'{LAKE}[table."web.public.other"]\nleave_out = ["{column}"]\n') == []


def test_the_app_s_own_columns_are_those_that_no_source_may_have() -> None:
    assert (*APP_COLUMNS.fieldNames(), DELETED) == OWN_COLUMNS
