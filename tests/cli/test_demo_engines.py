"""The demo with three databases runs to its end, and shows a sale on its way."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import psutil
import pytest

import tributary.cli
from tributary.cli.demo_engines import LAKE_FILE, check_lake
from tributary.cli.demo_steps import DemoImpossible
from tributary.contract.lake import Lake, read_lake
from tributary.local.pipeline import down
from tributary.local.state import StateFolder
from tributary.tickit.schema import TABLES
from tributary.tickit.three_databases import CUSTOMER_TABLES, EVENT_TABLES, SHOP_TABLES

OWN_LAKE = files(tributary.cli).joinpath(LAKE_FILE).read_text()


def _whole_demo(test: Callable[..., None]) -> Callable[..., None]:
    for mark in (pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)):
        test = mark(test)
    return test


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    down(StateFolder(tmp_path / "state"))


def _start_demo(folder: Path) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("tributary")), "demo-engines", "--state", "state"]
    size = ["--scale", "0.001", "--transactions", "50", "--rate", "100"]
    return subprocess.Popen(
        [*command, *size],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )


def _processes_of(folder: Path) -> list[str]:
    found = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [command for command in found if str(folder) in command]


def _lake(folder: Path, text: str) -> Lake:
    lake_file = folder / "lake.toml"
    lake_file.write_text(text)
    return read_lake(lake_file)


def test_every_table_of_the_shop_is_in_one_of_the_three_databases() -> None:
    spread = [table.name for table in (*SHOP_TABLES, *EVENT_TABLES, *CUSTOMER_TABLES)]
    assert sorted(spread) == sorted(table.name for table in TABLES)


def test_the_demo_takes_the_lake_file_that_it_writes(tmp_path: Path) -> None:
    check_lake(_lake(tmp_path, OWN_LAKE))


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("[source.crm]", "[source.customers]"),
        ('tables = ["shop.*"]', 'tables = ["shop.sales"]'),
        ('kind = "apicurio"', 'kind = "apicurio"\naddress = "http://registry.example:8080"'),
    ],
    ids=["another source", "too few tables", "a registry elsewhere"],
)
def test_the_demo_refuses_a_lake_that_it_cannot_fill(tmp_path: Path, own: str, other: str) -> None:
    assert OWN_LAKE.count(own) == 1
    with pytest.raises(DemoImpossible):
        check_lake(_lake(tmp_path, OWN_LAKE.replace(own, other)))


@_whole_demo
def test_three_databases_end_identical_and_one_sale_is_seen_on_its_way(folder: Path) -> None:
    process = _start_demo(folder)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert re.search(r"7 tables, [\d,]+ rows, identical", output), output
    assert "There is no SQL Server" in output
    changed = re.search(r"the event, kept: qtysold (\d+) → (\d+)", output)
    assert changed is not None, output
    before, after = (int(number) for number in changed.groups())
    assert after == before + 1
    silver = [line.split("silver", 1)[1].strip() for line in output.splitlines() if " s  silver " in line]
    updated, refunded, earlier = silver
    assert updated.startswith(f"qtysold = {after}, _op = u, _deleted = false")
    assert refunded.startswith(f"qtysold = {after}, _op = d, _deleted = true")
    assert earlier.endswith(f"qtysold = {after}, _deleted = false")
    in_kafka = [line for line in output.splitlines() if " s  Kafka " in line]
    assert len(in_kafka) == 2
    assert all(re.search(r"\d+ bytes of Avro, schema \d+$", line) for line in in_kafka)
    assert _processes_of(folder) == []


@_whole_demo
def test_ctrl_c_while_the_app_ingests_stops_all_of_it(folder: Path) -> None:
    process = _start_demo(folder)
    try:
        deadline = time.monotonic() + 300
        while not any("main.py" in command for command in _processes_of(folder)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert _processes_of(folder) == []
