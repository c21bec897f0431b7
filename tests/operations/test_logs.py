"""A log's end is taken apart into entries with a level, and no secret is left in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tributary.contract.lake import parse_lake
from tributary.local.state import StateFolder, choose_settings
from tributary.operations.logs import (
    HIDDEN,
    LogEntry,
    Redaction,
    chosen,
    known_secrets,
    parse_log,
    read_log,
)

KAFKA = """\
of the stack of an entry before
2026-11-27 07:38:42,347 WARN  [quorum] The log is empty, an ERROR elsewhere. (QuorumController)
2026-11-27 07:38:43,299 ERROR [main] Failed to discover Converter (PluginScanner)
java.lang.NoClassDefFoundError: x
\tat java.base/y

Caused by: z
2026-11-27 07:38:44,000 INFO  [main] ready (Main)
"""


def levels(text: str) -> list[str]:
    return [entry.level for entry in parse_log("kafka", text)]


def test_a_stack_trace_belongs_to_its_entry() -> None:
    entries = parse_log("kafka", KAFKA)
    assert [entry.level for entry in entries] == ["info", "warning", "error", "info"]
    assert entries[2].text.splitlines()[1:] == [
        "java.lang.NoClassDefFoundError: x",
        "\tat java.base/y",
        "Caused by: z",
    ]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-11-27 07:38:41.188 UTC [23010] LOG:  ready", "info"),
        ("2026-11-27 07:38:41.188 UTC [23010] ERROR:  no such table", "error"),
        ("2026-11-27 07:38:41.188 UTC [23010] FATAL:  no such role", "error"),
        ("2026-11-27 07:38:41.188 UTC [23010] WARNING:  careful", "warning"),
        ("2026-11-27  7:00:10 0 [Warning] Could not increase", "warning"),
        ("2026-11-27  7:00:10 0 [ERROR] mariadbd: down", "error"),
        ("2026-11-27  7:00:10 0 [Note] Starting MariaDB", "info"),
        ("07:38:39,777 |-WARN in ch.qos.logback - not referenced", "warning"),
        ("[s3proxy] E 11-27 07:38:40.123 main org.gaul: broken", "error"),
        ("[s3proxy] I 11-27 07:38:40.123 main org.gaul: well", "info"),
        ("[2026-11-27 07:38:40,123] WARN odd (x)", "warning"),
        (f"2026-11-27 07:38:44,000 INFO  [main] {'x' * 100} ERROR", "info"),
    ],
)
def test_the_level_of_each_server_s_lines_is_found(line: str, level: str) -> None:
    assert levels(f"{line}\n{line}") == [level, level]


def test_entries_are_chosen_by_level_and_text_and_the_latest_stay() -> None:
    entries = parse_log("kafka", KAFKA)
    assert [entry.level for entry in chosen(entries, "warning")] == ["warning", "error"]
    assert [entry.level for entry in chosen(entries, "error")] == ["error"]
    assert chosen(entries, having="CAUSED BY") == [entries[2]]
    assert chosen(entries, most=1) == [entries[3]]
    assert chosen(entries, having="nowhere") == []


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("password=hunter2, user=me", f"password={HIDDEN}, user=me"),
        ("database.password = hunter2", f"database.password = {HIDDEN}"),
        ('{"admin_password": "hunter2", "x": 1}', f'{{"admin_password": {HIDDEN}, "x": 1}}'),
        ("sasl.jaas.config password='hun ter2';", f"sasl.jaas.config password={HIDDEN};"),
        ("fs.s3a.secret.key: hunter2", "fs.s3a.secret.key: hunter2"),
        ("ALTER ROLE me PASSWORD 'hun''ter2' LOGIN", f"ALTER ROLE me PASSWORD {HIDDEN} LOGIN"),
        ("CREATE USER me IDENTIFIED BY 'hunter2'", f"CREATE USER me IDENTIFIED BY {HIDDEN}"),
        ("jdbc:postgresql://me:hunter2@host/db", f"jdbc:postgresql://me:{HIDDEN}@host/db"),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {HIDDEN}"),
        ("key AKIAABCDEFGHIJKLMNOP used", f"key {HIDDEN} used"),
        ("https://hooks.slack.com/services/T0/B0/x", f"https://hooks.slack.com/services/{HIDDEN}"),
        ("password = [hidden]", "password = [hidden]"),
        ("the password does not match", "the password does not match"),
        ("at http://127.0.0.1:8083/connectors", "at http://127.0.0.1:8083/connectors"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(line: str, shown: str) -> None:
    assert Redaction(())(line) == shown


@given(
    st.lists(st.text(st.characters(categories=["L", "N"]), min_size=6, max_size=20), max_size=4), st.text()
)
def test_no_known_secret_is_left_in_any_text(secrets: list[str], between: str) -> None:
    text = between.join(secrets) + between
    shown = Redaction.of(secrets)(text)
    assert not [secret for secret in secrets if secret in shown and secret not in between]


def test_the_end_of_a_log_has_no_secret_of_the_state_folder_and_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = parse_lake(
        '[lake]\nname = "shop"\n[source.web]\nengine = "postgres"\ndatabase = "shop"\ntables = ["public.*"]\n'
        '[source.web.connection]\nhost = "h"\nadmin_user = "a"\nadmin_password_env = "WEB_ADMIN"\n'
        '[alerts]\nwebhook_env = "HOOK"\n'
        '[registry]\nkind = "confluent"\naddress = "http://a:1"\nuser = "u"\npassword_env = "REGISTRY"\n'
    )
    monkeypatch.setenv("WEB_ADMIN", "of the administrator")
    monkeypatch.setenv("HOOK", "https://chat.example/very-secret")
    monkeypatch.setenv("REGISTRY", "of the registry")
    state = StateFolder(tmp_path)
    state.create()
    settings = choose_settings(state, "shop", {}, frozenset())
    secrets = known_secrets(lake, settings)
    own = settings.secrets
    derived = {own.hash_salt, own.mariadb_admin, own.replication_password("web")}
    generated = {getattr(own, name) for name in type(own).model_fields} | derived
    in_variables = {"of the administrator", "https://chat.example/very-secret", "of the registry"}
    assert set(secrets) == {secret.get_secret_value() for secret in generated} | in_variables
    lines = [f"2026-11-27 07:38:44,000 INFO  [main] found {secret} here" for secret in secrets]
    state.log("kafka").write_text("\n".join(["x" * 2000, *lines]) + "\n")

    entries = read_log(state, "kafka", Redaction.of(secrets), at_the_end=1500)

    assert len(entries) == len(secrets)
    assert all(f"found {HIDDEN} here" in entry.text for entry in entries)
    assert read_log(state, "s3", Redaction(())) == ()
    assert isinstance(entries[0], LogEntry)
