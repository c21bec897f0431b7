"""The Spark app gets a source of events in a form that does not depend on the current folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from spark_app.run.arguments import parse_arguments
from tributary.cli.commands.ingest import events_source


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("kafka", "kafka"),
        ("bronze", "bronze"),
        ("files:s3://bucket/topics", "files:s3a://bucket/topics"),
        ("files:hdfs://name/topics", "files:hdfs://name/topics"),
        ("files:topics", f"files:{Path('topics').absolute()}"),
    ],
)
def test_a_source_is_passed_on_whole(told: str, meant: str) -> None:
    required = ["--lake", "l", "--silver", "s", "--quarantine", "q"]
    assert events_source(told) == meant
    assert parse_arguments(["ingest", "--from", meant, *required]).events_from == meant


@pytest.mark.parametrize("told", ["", "s3://bucket/topics", "files:", "kafka:"])
def test_an_invalid_source_is_refused_before_anything_is_started(told: str) -> None:
    with pytest.raises(typer.BadParameter):
        events_source(told)
