"""A run's arguments say where its events are, or it says what is missing."""

from __future__ import annotations

from typing import Any, cast

import pytest

from spark_app.run.arguments import parse_arguments
from spark_app.run.event_sources import NoServers, open_source
from tributary.contract.lake import parse_lake

LAKE = parse_lake(
    '[lake]\nname = "shop"\n[source.web]\nengine = "postgres"\ndatabase = "d"\ntables = ["public.*"]\n'
)
REQUIRED = ("--lake", "lake.toml", "--silver", "s3://silver/", "--quarantine", "s3://quarantine/")


def test_a_run_that_reads_kafka_needs_its_servers() -> None:
    with pytest.raises(NoServers, match="--kafka HOST:PORT"):
        open_source(cast(Any, None), LAKE, parse_arguments(["ingest", *REQUIRED]))


def test_a_bucket_s_address_has_no_slash_at_its_end() -> None:
    arguments = parse_arguments(["ingest", *REQUIRED])
    assert (arguments.silver, arguments.quarantine) == ("s3://silver", "s3://quarantine")


def test_of_all_commands_only_an_ingest_follows() -> None:
    found = {
        command: parse_arguments([command, *REQUIRED, "--follow"]).is_following_ingest
        for command in ("ingest", "derive")
    }
    assert found == {"ingest": True, "derive": False}
