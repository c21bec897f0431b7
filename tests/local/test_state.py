"""A state folder hides its secrets, keeps its ports if possible, and admits one command at a time."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tributary.local.state import (
    LocalSettings,
    PortInUse,
    Ports,
    StateFolder,
    StateFolderBusy,
    StateFolderUnfit,
    choose_ports,
    choose_settings,
)

PROJECT = Path(__file__).parents[2]
NOTHING: frozenset[str] = frozenset()


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    folder = StateFolder(tmp_path / "state")
    folder.create()
    return folder


@contextmanager
def a_listener() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def settled(state: StateFolder, lake: str = "shop") -> LocalSettings:
    settings = choose_settings(state, lake, {}, NOTHING)
    state.write_settings(settings)
    return settings


def test_folders_and_settings_are_readable_by_their_owner_only(state: StateFolder) -> None:
    settled(state)

    assert {path.stat().st_mode & 0o077 for path in state.path.rglob("*") if path.name != "lock"} == {0}
    assert state.path.stat().st_mode & 0o777 == 0o700


def test_settings_come_back_as_they_were_written(state: StateFolder) -> None:
    assert state.read_settings() is None
    assert settled(state) == state.read_settings()


def test_secrets_and_the_cluster_id_stay_the_same_for_the_life_of_the_folder(state: StateFolder) -> None:
    first = settled(state)
    second = choose_settings(state, "shop", {}, NOTHING)

    assert second.secrets == first.secrets
    assert second.kafka_cluster_id == first.kafka_cluster_id


def test_two_folders_share_no_secret(tmp_path: Path) -> None:
    secrets = set()
    for name in ("one", "two"):
        state = StateFolder(tmp_path / name)
        state.create()
        secrets |= {secret.get_secret_value() for secret in dict(settled(state).secrets).values()}

    assert len(secrets) == 2 * len(LocalSettings.model_fields["secrets"].annotation.model_fields)  # type: ignore[union-attr]
    assert all(re.fullmatch("[0-9a-f]{20,}", secret) for secret in secrets)


def test_the_settings_show_no_secret_when_they_are_printed(state: StateFolder) -> None:
    settings = settled(state)

    for secret in dict(settings.secrets).values():
        assert secret.get_secret_value() not in repr(settings)
        assert secret.get_secret_value() not in str(settings)


def test_each_source_has_a_replication_password_of_its_own_that_stays(state: StateFolder) -> None:
    secrets = settled(state).secrets

    assert secrets.replication_password("shop") == secrets.replication_password("shop")
    assert secrets.replication_password("shop") != secrets.replication_password("crm")


def test_a_kafka_cluster_id_is_valid_for_kafka(state: StateFolder) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", settled(state).kafka_cluster_id)


def test_damaged_settings_are_reported_without_showing_them(state: StateFolder) -> None:
    state.settings_file.write_text('{"lake": "shop", "secrets": {"postgres_admin": ["hunter2"]}}')

    with pytest.raises(StateFolderUnfit) as failure:
        state.read_settings()

    assert failure.value.where == str(state.settings_file)
    assert "hunter2" not in str(failure.value)


def test_a_folder_belongs_to_one_lake(state: StateFolder) -> None:
    settled(state, "shop")

    with pytest.raises(StateFolderUnfit, match=r"found shop, expected crm.*--state"):
        choose_settings(state, "crm", {}, NOTHING)


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StateFolderUnfit) as failure:
        StateFolder(tmp_path / "file" / "state").create()

    assert failure.value.where == str(tmp_path / "file" / "state")


def test_only_one_command_at_a_time_starts_or_stops_servers(state: StateFolder) -> None:
    other = (
        "from pathlib import Path\n"
        "from tributary.local.state import StateFolder\n"
        f"with StateFolder(Path({str(state.path)!r})).exclusive(): pass\n"
    )
    with state.exclusive():
        refused = subprocess.run([sys.executable, "-c", other], cwd=PROJECT, capture_output=True, text=True)
        with pytest.raises(StateFolderBusy), state.exclusive():
            pass
    admitted = subprocess.run([sys.executable, "-c", other], cwd=PROJECT, capture_output=True, text=True)

    assert "StateFolderBusy" in refused.stderr
    assert admitted.returncode == 0


def test_every_server_has_a_port_of_its_own() -> None:
    ports = choose_ports({}, None, NOTHING)

    assert len(set(dict(ports).values())) == len(Ports.model_fields)


def test_a_folder_keeps_the_ports_that_are_still_free(state: StateFolder) -> None:
    first = settled(state).ports

    assert choose_ports({}, first, NOTHING) == first


def test_a_port_that_somebody_took_is_replaced_and_the_others_are_kept() -> None:
    first = choose_ports({}, None, NOTHING)
    with a_listener() as taken:
        last = first.model_copy(update={"s3": taken})
        chosen = choose_ports({}, last, NOTHING)

    assert chosen.s3 != taken
    assert chosen.model_copy(update={"s3": taken}) == last


def test_a_running_server_keeps_its_port_although_it_is_in_use() -> None:
    with a_listener() as taken:
        last = choose_ports({}, None, NOTHING).model_copy(update={"postgres": taken})

        assert choose_ports({}, last, frozenset({"postgres"})).postgres == taken


def test_a_fixed_port_is_taken_even_if_another_was_used_last() -> None:
    last = choose_ports({}, None, NOTHING)
    fixed = choose_ports({}, last, NOTHING).kafka + 1

    assert choose_ports({"kafka": fixed}, last, NOTHING).kafka == fixed


def test_a_port_that_is_now_fixed_for_another_server_is_given_up() -> None:
    before = choose_ports({}, None, NOTHING)
    after = choose_ports({"s3": before.kafka}, before, NOTHING)
    assert after.s3 == before.kafka
    assert len(set(after.model_dump().values())) == len(after.model_dump())


def test_a_fixed_port_in_use_is_reported_with_the_entry_and_the_process() -> None:
    with a_listener() as taken, pytest.raises(PortInUse) as failure:
        choose_ports({"kafka": taken}, None, NOTHING)

    assert failure.value.where == "[local].kafka_port"
    assert failure.value.found is not None
    assert "pid" in failure.value.found


def test_a_server_that_runs_on_another_port_than_the_file_now_says_is_reported() -> None:
    last = choose_ports({}, None, NOTHING)

    with pytest.raises(PortInUse, match="tributary down"):
        choose_ports({"s3": last.s3 + 1}, last, frozenset({"s3"}))
