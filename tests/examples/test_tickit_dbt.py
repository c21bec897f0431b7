"""The dbt project's marts hold the numbers that PostgreSQL computes, and its models are Athena's SQL, too."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.examples.conftest import PROJECT, RunningLake

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]

TOTALS = {
    "fct_sales": (
        "SELECT count(*) AS n, sum(tickets) AS tickets, sum(price_paid) AS paid,"
        " sum(seller_proceeds) AS rest",
        "SELECT count(*) AS n, sum(qtysold) AS tickets, sum(pricepaid) AS paid,"
        " sum(pricepaid - commission) AS rest FROM sales",
    ),
    "fct_listings": (
        "SELECT count(*) AS n, sum(tickets_left) AS tickets, sum(tickets_sold) AS sold",
        "SELECT count(*) AS n, sum(numtickets) AS tickets,"
        " (SELECT sum(qtysold) FROM sales) AS sold FROM listing",
    ),
    "dim_events": (
        "SELECT count(*) AS n, count(DISTINCT venue) AS venues, count(DISTINCT category) AS categories",
        "SELECT count(*) AS n, count(DISTINCT venuename) AS venues, count(DISTINCT catname) AS categories"
        " FROM event JOIN venue USING (venueid) JOIN category USING (catid)",
    ),
    "dim_users": (
        "SELECT count(*) AS n, count(*) FILTER (is_buyer) AS buyers, max(spent) AS most",
        "SELECT count(*) AS n, (SELECT count(DISTINCT buyerid) FROM sales) AS buyers,"
        " (SELECT max(spent) FROM (SELECT sum(pricepaid) AS spent FROM sales GROUP BY buyerid) AS s) AS most"
        " FROM users",
    ),
}
BY_CATEGORY = (
    "SELECT category, sum(price_paid) AS paid FROM fct_sales JOIN dim_events USING (event_id) GROUP BY 1",
    "SELECT catname AS category, sum(pricepaid) AS paid"
    " FROM sales JOIN event USING (eventid) JOIN category USING (catid) GROUP BY 1",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, so that its results leave no trace."""
    copy = tmp_path_factory.mktemp("dbt") / "tickit-dbt"
    ignored = shutil.ignore_patterns("target", "logs")
    shutil.copytree(PROJECT / "examples" / "tickit-dbt", copy, ignore=ignored)
    return copy


def _make(project: Path, target: str, programs: Path, lake: RunningLake) -> str:
    command = ["make", "--no-print-directory", "-C", str(project), target, f"PROGRAMS={programs}"]
    done = subprocess.run(command, env=lake.variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_daily_job_builds_marts_with_the_database_s_numbers(
    project: Path, programs: Path, demo_lake: RunningLake
) -> None:
    said = _make(project, "daily", programs, demo_lake)
    assert said.count("PASS freshness of lake.") == 7
    assert "ERROR=0" in said
    tests = re.search(r"Finished running .*?(\d+) data tests", said)
    assert tests is not None
    assert int(tests[1]) >= 50
    with duckdb.connect(str(project / "target" / "tickit.duckdb"), read_only=True) as marts:
        for mart, (of_mart, of_database) in TOTALS.items():
            assert _rows(marts, f"{of_mart} FROM {mart}") == demo_lake.rows(of_database), mart
        found = {row["category"]: row["paid"] for row in _rows(marts, BY_CATEGORY[0])}
    assert found
    assert found == {row["category"]: row["paid"] for row in demo_lake.rows(BY_CATEGORY[1])}
    catalog = json.loads((project / "target" / "catalog.json").read_text())
    assert len(catalog["nodes"]) == 13
    manifest = json.loads((project / "target" / "manifest.json").read_text())
    assert {one["name"] for one in manifest["exposures"].values()} == {"ticket_sales", "open_offers"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("_LAKE', '../../lake.toml'", "_NONE', 'nowhere.toml'", "nowhere.toml: there is no such lake file"),
        ("            state:", "            stat:", "unknown entry: found stat, expected lake or state"),
        ("            state: ", "            state: 5 #", "entry state: not a path: found 5"),
        ("            state: ", "            state: none-yet #", "To start the pipeline, run tributary up."),
    ],
)
def test_a_mistake_in_the_profile_is_told_in_one_paragraph_without_a_traceback(
    before: str, after: str, expected: str, project: Path, programs: Path, tmp_path: Path
) -> None:
    profile = (PROJECT / "examples" / "tickit-dbt" / "profiles.yml").read_text()
    assert before in profile
    (tmp_path / "profiles.yml").write_text(profile.replace(before, after))
    lake = {"TRIBUTARY_LAKE": str(PROJECT / "lake.toml")}
    done = _build(project, programs, tmp_path, lake)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert expected in said
    assert "Traceback" not in said


def _build(
    project: Path, programs: Path, profiles: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    command = [str(programs / "dbt"), "--no-use-colors", "build", "--select", "stg_venue"]
    folders = ["--profiles-dir", str(profiles), "--target-path", str(profiles / "target")]
    own = {"TICKIT_WAREHOUSE": str(profiles / "tickit.duckdb"), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    return subprocess.run(
        [*command, *folders],
        env={**os.environ, **own, **variables},
        cwd=project,
        capture_output=True,
        text=True,
    )


def test_a_second_job_waits_until_the_first_has_ended(project: Path, programs: Path) -> None:
    (project / "target").mkdir(exist_ok=True)
    command = ["make", "-C", str(project), "compile-aws", f"PROGRAMS={programs}"]
    with (project / "target" / ".job").open("w") as job:
        fcntl.flock(job, fcntl.LOCK_EX)
        second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        assert "Another job writes to target" in second.stderr.readline()
        assert second.poll() is None
    said, _ = second.communicate(timeout=300)
    assert second.returncode == 0, said


def test_the_models_compile_to_sql_that_athena_can_parse(
    project: Path, programs: Path, demo_lake: RunningLake
) -> None:
    _make(project, "compile-aws", programs, demo_lake)
    compiled = sorted((project / "target" / "aws" / "compiled" / "tickit" / "models").rglob("*.sql"))
    models = [path for path in compiled if path.parent.suffix != ".yml"]
    assert len(models) == 13
    assert any('"tickit_silver"."shop__public__sales"' in path.read_text() for path in models)
    parse = (
        "import sys, pathlib, sqlglot\n"
        "for name in sys.argv[1:]: sqlglot.parse_one(pathlib.Path(name).read_text(), dialect='athena')"
    )
    done = subprocess.run(
        [programs / "python", "-c", parse, *map(str, compiled)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_only_a_table_with_events_left_in_kafka_is_as_old_as_its_last_commit(
    project: Path, programs: Path, demo_lake: RunningLake
) -> None:
    begun = datetime.now(UTC)
    demo_lake.rows("UPDATE category SET catdesc = 'changed' WHERE catid = 1 RETURNING catid")
    for _ in range(20):
        _make(project, "freshness", programs, demo_lake)
        results = json.loads((project / "target" / "sources.json").read_text())["results"]
        found = {
            one["unique_id"].rpartition(".")[2]: datetime.fromisoformat(one["max_loaded_at"])
            for one in results
        }
        if found["category"] < begun:
            break
        time.sleep(1)  # Debezium has not sent the change yet.
    assert {table for table, moment in found.items() if moment < begun} == {"category"}


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
    return found
