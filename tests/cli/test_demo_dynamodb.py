"""The demo with DynamoDB ends with a lake that equals the items, although records come late and twice."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from moto import mock_aws

import tributary.cli
from tributary.cli.demo_dynamodb import LAKE_FILE, check_lake
from tributary.cli.demo_steps import DemoImpossible
from tributary.contract.lake import parse_lake
from tributary.local.pipeline import down
from tributary.local.state import StateFolder
from tributary.tickit.customers import TABLE, Customers
from tributary.tickit.workload import Plan

OWN_LAKE = files(tributary.cli).joinpath(LAKE_FILE).read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    down(StateFolder(tmp_path / "state"))


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of a test")
    with mock_aws():
        yield boto3.client("dynamodb", region_name="eu-central-1")


def test_the_demo_takes_the_lake_file_that_it_writes() -> None:
    check_lake(parse_lake(OWN_LAKE))


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("customers", "orders"),
        (
            'stream = "crm-changes"',
            'stream = "s"\nendpoints = { kinesis = "http://x:1", dynamodb = "http://x:2" }',
        ),
        (
            "[defaults]",
            '[source.web]\nengine = "postgres"\ndatabase = "web"\ntables = ["public.*"]\n[defaults]',
        ),
    ],
    ids=["another table", "services elsewhere", "a second source"],
)
def test_the_demo_refuses_a_lake_that_it_cannot_fill(own: str, other: str) -> None:
    assert own in OWN_LAKE
    text = OWN_LAKE.replace(own, other).replace('[table."crm.dynamodb.customers"]\npartition_by', "#")
    with pytest.raises(DemoImpossible):
        check_lake(parse_lake(text.replace("buckets = 1", "")))


def test_the_customers_of_one_seed_are_always_the_same(dynamodb: Any) -> None:
    plan = Plan(transactions=60, rate=None)
    found = []
    for _ in range(2):
        customers = Customers(dynamodb, random.Random(7))
        customers.create(20)
        summary = customers.trade(plan)
        assert sum(summary.transactions.values()) == summary.changes == 60
        assert summary.transactions.keys() == {"sign up", "buy", "move", "leave"}
        items = dynamodb.scan(TableName=TABLE)["Items"]
        assert sorted(int(item["id"]["S"]) for item in items) == sorted(customers.there)
        for item in items:
            item.get("likes", {}).get("SS", []).sort()
        found.append(sorted(items, key=lambda item: item["id"]["S"]))
        dynamodb.delete_table(TableName=TABLE)
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_lake_equals_the_items_and_each_row_is_in_the_partition_of_its_last_digit(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("tributary")), "demo-dynamodb", "--state", "state"]
    size = ["--customers", "60", "--changes", "120", "--rate", "50"]
    ended = subprocess.run(
        [*command, *size],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    output = ended.stdout
    assert ended.returncode == 0, output
    assert re.search(r"1 table, [\d,]+ rows, identical", output), output
    assert "120 transactions changed 120 rows" in output
    partitions = [line.split() for line in output.splitlines() if re.match(r"\s*\d\s+\d+\s", line)]
    assert [line[0] for line in partitions] == [str(digit) for digit in range(10)], output
    assert "Kafka" not in output
    commands = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    assert not [one for one in commands if str(folder) in one]
