"""A command's task runs once for each table, and a table's failure does not stop the others."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from spark_app.reports import Committed, ProgressWriter
from spark_app.run.table_task import run_for_each_table
from spark_app.schema_registry.registry import RegistryAway
from spark_app.sources.event import EventSource
from spark_app.table.table_ingest import TableIngest


def test_a_registry_that_is_away_fails_one_table_with_a_remedy_and_not_the_others() -> None:
    def rebuild(table: TableIngest) -> Committed:
        tried.append(table.name)
        if table.name == "first":
            raise RegistryAway("The schema registry does not answer at http://registry")
        return cast(Committed, SimpleNamespace(table=table.name))

    tried: list[str] = []
    out = _Reports()
    source = cast(EventSource, SimpleNamespace(topics=lambda: {"first", "second"}))

    def table_of(topic: str) -> TableIngest:
        return cast(TableIngest, SimpleNamespace(name=topic))

    assert not run_for_each_table(source, table_of, rebuild, out, cast(Any, None))

    assert tried == ["first", "second"]
    told = "The schema registry does not answer at http://registry."
    assert out.named("blocked") == [
        {
            "event": "blocked",
            "table": "first",
            "error": told,
            "remedies": [{"kind": "advice", "text": "Run the command again once it answers."}],
            "is_lacking_classes": False,
            "is_unchanged": False,
        }
    ]
    assert out.named("stopped")[0]["tables"] == {"first": told, "second": "ok"}


@pytest.mark.parametrize(
    "error", [OSError("the bucket does not answer"), PySparkException("a job failed")], ids=["S3", "Spark"]
)
def test_a_passing_failure_of_one_table_does_not_stop_the_others(error: Exception) -> None:
    def rebuild(table: TableIngest) -> Committed:
        if table.name == "first":
            raise error
        return cast(Committed, SimpleNamespace(table=table.name))

    out = _Reports()
    source = cast(EventSource, SimpleNamespace(topics=lambda: {"first", "second"}))

    def table_of(topic: str) -> TableIngest:
        return cast(TableIngest, SimpleNamespace(name=topic))

    assert not run_for_each_table(source, table_of, rebuild, out, cast(Any, None))
    assert out.named("stopped")[0]["tables"]["second"] == "ok"
    (blocked,) = out.named("blocked")
    assert str(error) in blocked["error"]
    assert blocked["remedies"] == [{"kind": "advice", "text": "Run the command again."}]


def test_the_text_of_an_error_that_may_quote_a_key_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    def erase(_: TableIngest) -> Committed:
        raise PySparkException("k_topic = 'orders' AND key = 'ada@example.org'")

    out = _Reports()
    source = cast(EventSource, SimpleNamespace(topics=lambda: {"first"}))

    def table_of(topic: str) -> TableIngest:
        return cast(TableIngest, SimpleNamespace(name=topic))

    with pytest.raises(PySparkException):
        run_for_each_table(source, table_of, erase, out, cast(Any, None), passing=(ConnectionError,))
    assert "ada@" not in capsys.readouterr().err + out.text.getvalue()


class _Reports(ProgressWriter):
    """Keeps the app's own reports, without those that the fake task returns."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        super().__init__(self.text)

    def write(self, report: Any) -> None:
        if not isinstance(report, SimpleNamespace):
            super().write(report)

    def named(self, event: str) -> list[dict[str, Any]]:
        found = map(json.loads, self.text.getvalue().splitlines())
        return [one for one in found if one["event"] == event]
