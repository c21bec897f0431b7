"""The columns of commits, and how they changed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.console.views import commit
from tributary.api.column_history import ColumnChange, column_changes, columns_of, type_text
from tributary.api.timeline import Commit


def commit_of(instant: str, **columns: Any) -> Commit:
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in columns.items()]
    return replace(commit(), instant=instant, schema=json.dumps({"type": "record", "fields": fields}))


def test_a_column_comes_goes_and_gets_another_type() -> None:
    first = commit_of("1", id="int", price="int", note="string")
    second = commit_of("2", id="long", price="int", note="string")
    third = commit_of("3", id="long", price="int", code="string")
    changes = list(column_changes([third, second, first]))
    when = commit().completed
    assert changes == [
        ColumnChange("3", when, "code", None, "string"),
        ColumnChange("3", when, "note", "string", None),
        ColumnChange("2", when, "id", "int", "long"),
    ]


def test_a_commit_without_a_schema_is_skipped() -> None:
    first, third = commit_of("1", id="int"), commit_of("3", id="int", a="int")
    silent = replace(first, instant="2", schema=None)
    assert columns_of(silent) == {}
    assert [one.column for one in column_changes([third, silent, first])] == ["a"]


@pytest.mark.parametrize(
    ("avro", "text"),
    [
        ("string", "string"),
        (["null", "long"], "long"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp-micros"),
        (
            {"type": "fixed", "name": "f", "logicalType": "decimal", "precision": 10, "scale": 2},
            "decimal(10, 2)",
        ),
        ({"type": "array", "items": ["null", "string"]}, "array of string"),
        ({"type": "map", "values": "double"}, "map of double"),
        ({"type": "record", "name": "point", "fields": []}, "record"),
    ],
)
def test_a_type_is_told_in_a_few_words(avro: Any, text: str) -> None:
    assert type_text(avro) == text
