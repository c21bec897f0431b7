"""What the lake file says of a table's columns is checked against the columns that the table has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.table_problems import column_problems
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
