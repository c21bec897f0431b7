"""Prometheus reads the numbers that the pages show, under names that do not change."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.console.views import NOW, ORDERS, USERS, blocked, left_out, view_of, well
from tributary.console.metrics import exposition
from tributary.console.view import LakeView, Part

DOCS = Path(__file__).parents[2] / "docs" / "console.md"


def samples(view: LakeView) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(exposition(view).decode())
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_table_that_is_well_has_all_its_numbers() -> None:
    found = samples(view_of(well(behind=5)))
    table = str(ORDERS)
    assert found["tributary_well",] == 1
    assert found["tributary_table_well", table] == 1
    assert found["tributary_table_state", "well", table] == 1
    assert found["tributary_table_events_behind", table] == 5
    assert found["tributary_table_last_commit_timestamp_seconds", table] == NOW.timestamp()
    assert found["tributary_table_freshness_seconds", "0.5", table] == 2
    assert found["tributary_table_freshness_seconds", "0.95", table] == 3
    assert found["tributary_table_verified_timestamp_seconds", table] == NOW.timestamp()
    assert found["tributary_table_rows_different", table] == 0
    assert found["tributary_table_quarantined_events", table] == 3
    assert found["tributary_source_log_unread_bytes", "web"] == 1000
    assert found["tributary_source_log_kept_bytes", "web"] == 5_000_000
    assert ("tributary_source_log_kept_bytes", "crm") not in found, "SQL Server does not tell"
    assert found["tributary_accelerated",] == 0
    assert found["tributary_server_up", "kafka"] == 1
    assert found["tributary_server_resident_bytes", "kafka"] == 2_000_000
    assert found["tributary_connector_running", "tributary-shop-web-debezium"] == 1


@pytest.mark.parametrize(
    "view",
    [
        view_of(blocked()),
        view_of(left_out()),
        view_of(well(), connector="FAILED"),
        view_of(problem="Kafka does not answer"),
    ],
)
def test_the_lake_is_not_well_if_somebody_has_to_do_something(view: LakeView) -> None:
    assert samples(view)["tributary_well",] == 0


def test_a_name_with_quotes_stays_one_label() -> None:
    assert samples(view_of(left_out()))["tributary_table_state", "left out", str(USERS)] == 1


def test_of_several_jobs_with_one_name_the_latest_counts() -> None:
    jobs = (Part("follow", "RUNNING"), Part("follow", "FAILED", runs=False))
    view = view_of(well())
    pipeline = replace(view.pipeline, servers=jobs)
    assert samples(replace(view, pipeline=pipeline))["tributary_server_up", "follow"] == 1
    assert exposition(replace(view, pipeline=pipeline)).count(b'tributary_server_up{server="follow"}') == 1


def test_the_docs_list_every_metric() -> None:
    names = {name for name, *_ in samples(view_of(well()))}
    documented = set(re.findall(r"^\| `(tributary_\w+)` \|", DOCS.read_text(), re.MULTILINE))
    assert documented == names
