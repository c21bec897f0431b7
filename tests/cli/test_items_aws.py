"""A deployed lake whose sources are all streams of items has no Kafka, and no command asks for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.deployed import ITEMS, Deployed, deploy, moto_aws
from tributary.cli import main


@pytest.fixture(autouse=True)
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    (tmp_path / "lake.toml").write_text(ITEMS)
    monkeypatch.chdir(tmp_path)
    with moto_aws(monkeypatch):
        yield deploy(has_kafka=False)


def test_a_follow_job_starts_without_kafka(deployed: Deployed) -> None:
    assert main.run(["submit", "follow"]) == 0
    (step,) = deployed.emr.list_steps(ClusterId=deployed.place_id)["Steps"]
    arguments = step["Config"]["Args"]
    assert "ingest" in arguments
    assert not {"--kafka", "--msk-iam", "--bronze-table"} & {*arguments}


def test_the_status_has_no_connectors_and_no_problem(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.put_silver_table("orders")
    exit_status = main.run(["status", "--aws", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert exit_status == 0, found
    assert found["connectors"] == []
    assert [table["table"] for table in found["tables"]] == ["shop.public.orders"]
