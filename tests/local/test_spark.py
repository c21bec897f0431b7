"""spark-submit starts the Spark app, SIGTERM stops it as it stops a driver, and it never runs twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.local.landed import wait_until
from tributary.artifacts.java import find_java
from tributary.contract.lake import parse_lake
from tributary.local.process import read_process
from tributary.local.spark import SERVICE, SparkBusy, SparkInstallation, owner_of, start_spark, stop_spark
from tributary.local.state import LocalSettings, StateFolder, choose_settings

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
LAKE = """
[lake]
name = "shop"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""
# A stand-in for the app: it reports, prints other text too, and ends when it gets SIGTERM.
APPLICATION = """
import json, os, signal, sys, threading
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
print("a word on standard error", file=sys.stderr, flush=True)
print("no report", flush=True)
print(json.dumps({"event": "started", "arguments": sys.argv[1:], "pid": os.getpid()}), flush=True)
stopped.wait(120 if "--follow" in sys.argv else 0)
print(json.dumps({"event": "stopped"}), flush=True)
sys.exit(int(os.environ.get("STATUS", "7")))
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    folder = StateFolder(tmp_path / "state")
    folder.create()
    folder.write_settings(choose_settings(folder, "shop", {}, frozenset()))
    yield folder
    stop_spark(folder.run, patience_seconds=0)


@pytest.fixture
def settings(state: StateFolder) -> LocalSettings:
    settings = state.read_settings()
    assert settings is not None
    return settings


@pytest.fixture
def installation(tmp_path: Path) -> SparkInstallation:
    package = tmp_path / "package"
    package.mkdir()
    (package / "main.py").write_text(APPLICATION)
    return SparkInstallation(find_java().home, jars=(), package=package)


def test_reports_arrive_unchanged_other_output_goes_to_the_log_and_the_status_is_passed_on(
    state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> None:
    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest", "--silver", "a b"])

    reports = [json.loads(line) for line in running.reports()]

    assert running.wait() == 7
    assert [report["event"] for report in reports] == ["started", "stopped"]
    assert reports[0]["arguments"] == ["ingest", "--silver", "a b"]
    assert {"a word on standard error", "no report"} <= {*running.log.read_text().splitlines()}
    assert running.log.stat().st_mode & 0o077 == 0
    assert read_process(SERVICE, state.run) is None


def test_a_log_that_cannot_be_written_does_not_end_the_reading_of_reports(
    state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> None:
    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest"])
    running.log = Path("/dev/full")

    assert [json.loads(report)["event"] for report in running.reports()] == ["started", "stopped"]
    assert running.wait() == 7


def test_secrets_go_by_environment_and_a_private_file(
    state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> None:
    secrets = [secret.get_secret_value() for secret in dict(settings.secrets).values()]
    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest", "--follow"])
    reports = running.reports()
    driver = psutil.Process(json.loads(next(reports))["pid"])
    lines = [" ".join(process.cmdline()) for process in (driver, *driver.parents()[:1])]
    running.ask_to_stop()
    assert [json.loads(line)["event"] for line in reports] == ["stopped"]
    running.wait()

    assert not [secret for secret in secrets for line in lines if secret in line]
    for path in (path for path in state.path.rglob("*") if path.is_file()):
        if any(secret in path.read_text(errors="replace") for secret in secrets):
            assert path.stat().st_mode & 0o077 == 0, path


def test_a_stop_request_reaches_the_driver_which_then_ends_by_itself(
    state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> None:
    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest", "--follow"])
    reports = running.reports()
    next(reports)

    running.ask_to_stop()

    assert [json.loads(line)["event"] for line in reports] == ["stopped"]
    assert running.wait() == 7


def test_a_second_application_is_refused_while_the_first_runs(
    state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> None:
    lake = parse_lake(LAKE)
    running = start_spark(lake, state, settings, installation, ["ingest", "--follow"])
    next(running.reports())

    with pytest.raises(SparkBusy, match=str(running.record.pid)):
        start_spark(lake, state, settings, installation, ["ingest"])

    assert stop_spark(state.run)
    assert running.wait() == 7
    assert not stop_spark(state.run)


def test_an_application_whose_starter_was_killed_gives_way_to_the_next(
    state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> None:
    starter = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, signal\n"
            "from pathlib import Path\n"
            "from tributary.artifacts.java import find_java\n"
            "from tributary.contract.lake import parse_lake\n"
            "from tributary.local.spark import SparkInstallation, start_spark\n"
            "from tributary.local.state import StateFolder\n"
            f"state = StateFolder(Path({str(state.path)!r}))\n"
            f"installation = SparkInstallation(find_java().home, (), Path({str(installation.package)!r}))\n"
            f"lake = parse_lake({LAKE!r})\n"
            "settings = state.read_settings()\n"
            "running = start_spark(lake, state, settings, installation, ['ingest', '--follow'])\n"
            "next(running.reports())\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n",
        ],
        cwd=PROJECT,
        timeout=600,
    )
    assert starter.returncode == -signal.SIGKILL
    orphan = read_process(SERVICE, state.run)
    assert orphan is not None

    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest"])
    assert [json.loads(line)["event"] for line in running.reports()] == ["started", "stopped"]
    running.wait()

    wait_until(lambda: not psutil.pid_exists(orphan.pid), "end of the application that nobody read")
    assert read_process(owner_of(SERVICE), state.run) is None


def test_the_next_start_removes_a_killed_application_s_temporary_files(
    state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> None:
    (state.spark / "scratch" / "blockmgr").mkdir(parents=True)
    (state.spark / "scratch" / "blockmgr" / "shuffled").write_bytes(b"rows")

    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest", "--follow"])
    reports = running.reports()
    next(reports)
    left = list(state.spark.rglob("shuffled"))
    running.ask_to_stop()
    list(reports)
    running.wait()

    assert not left


def test_settings_of_another_spark_on_this_machine_have_no_effect(
    state: StateFolder,
    settings: LocalSettings,
    installation: SparkInstallation,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.master spark://elsewhere:7077\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master spark://elsewhere:7077 pyspark-shell")
    monkeypatch.setenv("STATUS", "3")

    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest"])

    assert len(list(running.reports())) == 2
    assert running.wait() == 7  # not 3, because the app gets only a few of the caller's variables


def test_the_driver_takes_java_options_from_spark_s_own_variable(
    state: StateFolder,
    settings: LocalSettings,
    installation: SparkInstallation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dwanted=yes")
    running = start_spark(parse_lake(LAKE), state, settings, installation, ["ingest", "--follow"])
    reports = running.reports()
    next(reports)
    options = psutil.Process(running.record.pid).cmdline()
    running.ask_to_stop()
    list(reports)
    running.wait()

    assert "-Dwanted=yes" in options
