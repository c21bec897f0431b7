"""Every valid lake file keeps its values, and a mistake in one is reported with its entry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from connectors.deployment import MAX_EVENT_MB
from tests.contract.lake_files import lake_files, toml
from tests.postgres_source import postgres_source
from tributary.contract.alerts import Alerts, Smtp
from tributary.contract.engines.binlog import BinlogConnection, BinlogSource
from tributary.contract.engines.dynamodb import DynamoDbSource, Endpoints
from tributary.contract.engines.postgres import PostgresConnection, PostgresSource
from tributary.contract.lake import (
    Bronze,
    Defaults,
    Lake,
    LakeFileError,
    LakeSection,
    Local,
    TablePolicy,
    parse_lake,
    read_lake,
)
from tributary.contract.outbox import Outbox
from tributary.contract.schema_registry import Registry
from tributary.contract.source import Events
from tributary.contract.table_name import TableName
from tributary.contract.verify import Verify

ROOT = Path(__file__).parents[2]
MINIMAL = (
    '[lake]\nname = "shop"\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\ntables = ["public.*"]\n'
)


@given(lake_files())
def test_every_valid_file_is_read_and_written_again_as_the_same_lake(file: dict[str, Any]) -> None:
    lake = parse_lake(toml(file))
    again = _file_of(lake)
    _assert_holds(again, file)
    assert parse_lake(toml(again)) == lake
    assert hash(parse_lake(toml(again))) == hash(lake)


@given(lake_files(), st.data())
def test_an_unknown_key_anywhere_is_refused_by_name(file: dict[str, Any], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([(), *_paths_of_tables(file)]), label="section")
    known = set(_at(_file_of(parse_lake(toml(file))), path))
    key = data.draw(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), label="key")
    assume(key not in known and key not in _CONNECTION_KEYS and not _names_an_entry(path))
    section = _at(file, path)
    section[key] = data.draw(st.sampled_from(["text", 7, [1], {"a": 1}]), label="value")
    _assert_refused(file, (*path, key), found=key)


@given(lake_files(), st.data())
def test_a_value_of_a_wrong_type_anywhere_is_refused_by_its_entry(
    file: dict[str, Any], data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(list(_paths_of_values(file))), label="entry")
    right = _at(file, path)
    anything: list[Any] = [7, 1.5, True, "text", [], {}]
    wrong = [value for value in anything if not _could_be_right(right, value)]
    _at(file, path[:-1])[path[-1]] = data.draw(st.sampled_from(wrong), label="value")
    _assert_refused(file, path)


@settings(max_examples=40)  # drawing a file is slow, and there are only a dozen entries to leave out
@given(lake_files(), st.data())
def test_a_file_that_lacks_a_required_entry_is_refused_by_its_name(
    file: dict[str, Any], data: st.DataObject
) -> None:
    required = [("lake",), ("lake", "name"), ("source",)]
    required += [("source", name, key) for name in file["source"] for key in ("engine", "database", "tables")]
    path = data.draw(st.sampled_from(required), label="entry")
    del _at(file, path[:-1])[path[-1]]
    _assert_refused(file, path)


@settings(max_examples=20)  # there are only four mistakes
@given(lake_files(), st.data())
def test_a_value_out_of_its_bounds_is_refused_with_them(file: dict[str, Any], data: st.DataObject) -> None:
    section = data.draw(st.sampled_from(["defaults", "local"]))
    key, value, bound = data.draw(
        st.sampled_from(
            [("buckets", 0, "1"), ("buckets", 1025, "1024")]
            if section == "defaults"
            else [("s3_port", 0, "1"), ("kafka_port", 65536, "65535")]
        )
    )
    file.setdefault(section, {})[key] = value
    error = _assert_refused(file, (section, key), found=str(value))
    assert bound in str(error.expected)


@given(lake_files())
def test_every_variable_with_a_secret_is_known_wherever_the_file_names_it(file: dict[str, Any]) -> None:
    values = {path: _at(file, path) for path in _paths_of_values(file)}
    named = {text for path, text in values.items() if path[-1].endswith("_env") and isinstance(text, str)}
    assert parse_lake(toml(file)).secret_variables == named


@given(lake_files())
def test_a_table_s_entry_overrides_the_defaults(file: dict[str, Any]) -> None:
    lake = parse_lake(toml(file))
    for text, entry in file.get("table", {}).items():
        policy = lake.policy(TableName.parse(text))
        own = TablePolicy.model_validate({**entry, **_tuples(entry)})
        for field in ("storage", "deletes", "history", "longest_query", "buckets", "quarantine_limit"):
            expected = getattr(own, field) if field in entry else getattr(lake.defaults, field)
            assert getattr(policy, field) == expected
        assert policy.key == (tuple(entry["key"]) if "key" in entry else None)
        assert policy.partition_by == tuple(entry.get("partition_by", ()))


def test_a_missing_entry_has_the_documented_default() -> None:
    lake = parse_lake(MINIMAL)
    assert lake.policy(TableName("shop", "public", "orders")) == TablePolicy(
        storage="merge_on_read",
        deletes="hard",
        history=timedelta(hours=24),
        longest_query=timedelta(minutes=20),
        key=None,
        partition_by=(),
        buckets=2,
        quarantine_limit="10%",
    )
    assert lake.source("shop").connection is None
    assert lake.source("shop").partitions == 1


def test_a_lake_cannot_be_changed() -> None:
    lake = parse_lake(MINIMAL)
    with pytest.raises(ValidationError, match="frozen"):
        lake.name = "other"  # type: ignore[misc]


MISTAKES = {
    "not TOML": ("[lake", "not TOML", None),
    "a key that is nearly right": (MINIMAL.replace("tables", "tabels"), "[source.shop].tabels", "tables?"),
    "a value that is nearly right": (
        f'{MINIMAL}[defaults]\ndeletes = "sotf"',
        "[defaults].deletes",
        "Did you mean soft?",
    ),
    "a table's name without quotes": (
        f'{MINIMAL}[table.shop.public.orders]\ndeletes = "soft"',
        "[table.shop].public",
        '[table."source.schema.table"]',
    ),
    "a table of no source": (
        f'{MINIMAL}[table."shoop.public.orders"]',
        '[table."shoop.public.orders"]',
        "shop",
    ),
    "a table that its source leaves out": (
        f'{MINIMAL}[table."shop.private.orders"]',
        '[table."shop.private.orders"]',
        "public.*",
    ),
    "one table twice": (
        f'{MINIMAL}[table."shop.public.a"]\n[table.\'"shop".public.a\']',
        "second entry",
        "one entry",
    ),
    "a key without columns": (f'{MINIMAL}[table."shop.public.a"]\nkey = []', ".key", "at least one"),
    "a column twice": (f'{MINIMAL}[table."shop.public.a"]\nkey = ["a", "a"]', ".key", "different names"),
    "only exclude patterns": (MINIMAL.replace("public.*", "!public.a"), "[source.shop].tables", "without"),
    "a pattern without a schema": (
        MINIMAL.replace("public.*", "orders"),
        "[source.shop].tables[0]",
        "schema.table",
    ),
    "an unsupported engine": (MINIMAL.replace('"postgres"', '"oracle"'), "[source.shop].engine", "postgres"),
    "a lake's name for no bucket": (MINIMAL.replace('"shop"', '"Shop_1"', 1), "[lake].name", "lower-case"),
    "a source's name for no slot": (
        MINIMAL.replace("source.shop", "source.Shop"),
        "[source.Shop]",
        "lower-case",
    ),
    "a history of nothing": (f'{MINIMAL}[defaults]\nhistory = "0h"', "[defaults].history", "24h"),
    "a share of more than all": (
        f'{MINIMAL}[defaults]\nquarantine_limit = "101%"',
        "[defaults].quarantine_limit",
        '"10%"',
    ),
    "a port for two servers": (
        f"{MINIMAL}[local]\ns3_port = 9000\nkafka_port = 9000",
        "[local].s3_port",
        "a port of its own",
    ),
    "avro without a registry": (
        MINIMAL.replace("[source.shop]", '[source.shop]\nformat = "avro"'),
        "[source.shop].format",
        "[registry]",
    ),
    "an address of glue": (
        f'{MINIMAL}[registry]\nkind = "glue"\naddress = "http://a:1"',
        "[registry].address",
        "name, region",
    ),
    "a region of apicurio": (
        f'{MINIMAL}[registry]\nkind = "apicurio"\nregion = "eu-west-1"',
        "[registry].region",
        "address, user, password_env",
    ),
    "half of a login": (
        f'{MINIMAL}[registry]\nkind = "confluent"\naddress = "http://a:1"\nuser = "ann"',
        "[registry]",
        "both",
    ),
    "a login to nothing": (
        f'{MINIMAL}[registry]\nkind = "confluent"\nuser = "ann"\npassword_env = "A"',
        "[registry].user",
        "address",
    ),
    "a password in an address": (
        f'{MINIMAL}[registry]\nkind = "confluent"\naddress = "http://ann:secret@a:1"',
        "[registry].address",
        "without a user",
    ),
    "a registry on aws that nobody starts": (
        f'{MINIMAL}[registry]\nkind = "apicurio"\n[aws]\nregion = "eu-west-1"',
        "[registry].address",
        'kind = "glue"',
    ),
    "a login on aws": (
        f'{MINIMAL}[registry]\nkind = "confluent"\naddress = "http://a:1"\nuser = "ann"\npassword_env = "A"\n'
        '[aws]\nregion = "eu-west-1"',
        "[registry].user",
        "without a login",
    ),
    "half of an administrator": (
        f'{MINIMAL}[source.shop.connection]\nhost = "h"\nadmin_user = "a"',
        "[source.shop.connection]",
        "admin_password_env",
    ),
    "no password at all": (
        f'{MINIMAL}[source.shop.connection]\nhost = "h"',
        "[source.shop.connection]",
        "password_env",
    ),
    "the administrator as replication user": (
        f'{MINIMAL}[source.shop.connection]\nhost = "h"\n'
        'user = "a"\nadmin_user = "a"\nadmin_password_env = "A"',
        "[source.shop.connection].user",
        "fewer rights",
    ),
    "alerts that reach nobody": (f"{MINIMAL}[alerts]\nlag = 5", "[alerts]", "webhook_env"),
    "alerts without a rule": (
        f'{MINIMAL}[alerts]\nblocked = false\nwebhook_env = "HOOK"',
        "[alerts]",
        "freshness, lag, quarantine",
    ),
    "half of a login at a mail server": (
        f'{MINIMAL}[alerts.smtp]\nhost = "h"\nsender = "a@b.c"\nrecipients = ["a@b.c"]\nuser = "u"',
        "[alerts.smtp]",
        "password_env",
    ),
    "a password without encryption": (
        f'{MINIMAL}[alerts.smtp]\nhost = "h"\nsender = "a@b.c"\nrecipients = ["a@b.c"]\nuser = "u"\n'
        'password_env = "P"\nsecurity = "none"',
        "[alerts.smtp]",
        "starttls",
    ),
    "a server to verify with nothing": (
        f'{MINIMAL}[source.shop.connection]\nhost = "h"\npassword_env = "A"\nsslmode = "verify-ca"',
        "[source.shop.connection]",
        "sslrootcert",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_with_its_entry_and_what_was_expected(mistake: str) -> None:
    text, entry, expected = MISTAKES[mistake]
    with pytest.raises(LakeFileError) as caught:
        parse_lake(text, where="here/lake.toml")
    message = str(caught.value)
    assert message.startswith("here/lake.toml")
    assert entry in message
    assert expected is None or expected in message
    assert "\n" not in message


def test_a_password_in_the_place_of_its_variable_is_not_repeated() -> None:
    password = "hunter 2"
    text = f'{MINIMAL}[source.shop.connection]\nhost = "h"\npassword_env = "{password}"'
    with pytest.raises(LakeFileError) as caught:
        parse_lake(text)
    assert "password_env" in str(caught.value)
    assert password not in str(caught.value)


def test_a_password_under_a_key_of_its_own_is_not_repeated() -> None:
    text = f'{MINIMAL}[source.shop.connection]\nhost = "h"\npassword = "hunter2"'
    with pytest.raises(LakeFileError, match="Did you mean password_env") as caught:
        parse_lake(text)
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LakeFileError, match=r"nowhere\.toml.*change to the folder"):
        read_lake(tmp_path / "nowhere.toml")


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LakeFileError, match=r"lake\.toml.*cannot be read"):
        read_lake(path)


def test_the_lake_file_of_the_project_is_valid() -> None:
    lake = read_lake(ROOT / "lake.toml")
    assert len(lake.sources) == 1
    assert postgres_source(lake).database == "tickit"


def test_the_reference_has_every_rule_of_verification_and_its_default() -> None:
    reference = (ROOT / "docs" / "lake-file.md").read_text()
    _, _, section = reference.partition("## `[verify]`")
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^|]*)` \|", section.partition("\n## ")[0], re.MULTILINE))
    defaults = {"interval": "10m", "rows": 200_000, "load": "25%", "statement_seconds": 30, "repair": False}
    assert rows == {name: json.dumps(value) for name, value in defaults.items()}
    assert parse_lake(f"{MINIMAL}[verify]").verify == Verify(interval=timedelta(minutes=10))


def test_the_reference_has_every_entry_and_its_default() -> None:
    reference = (ROOT / "docs" / "lake-file.md").read_text().partition("## `[alerts]`")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", reference, re.MULTILINE))
    of_binlog = (BinlogSource, BinlogConnection)
    of_items = (DynamoDbSource, Endpoints)
    of_databases = (*of_binlog, *of_items, PostgresSource, PostgresConnection, Outbox, Events)
    models = (*of_databases, Registry, TablePolicy, Local, Bronze)
    fields = {name: field for model in models for name, field in model.model_fields.items()}
    assert rows.keys() == {"name", "max_event_mb", "acceleration", "hash_salt_env", *fields} - {
        "connection",
        "endpoints",
        "events",
        "outbox",
    }
    assert rows.pop("max_event_mb").strip("`") == str(MAX_EVENT_MB)
    assert rows.pop("acceleration").strip('`"') == parse_lake(MINIMAL).acceleration
    for name, cell in rows.items():
        default = fields[name].default if name in fields else None
        expected = {timedelta(hours=24): "24h", timedelta(minutes=20): "20m", None: "none", (): "none"}.get(
            default, default
        )
        if isinstance(expected, bool):
            expected = str(expected).lower()
        assert cell.strip('`"') in {str(expected), "required", *_EXPLAINED_DEFAULTS}, name


def test_the_reference_has_every_entry_of_alerts() -> None:
    text = (ROOT / "docs" / "lake-file.md").read_text()
    section, mail = re.split(
        r"^###? `\[alerts\.smtp\]`", text.partition("## `[alerts]`")[2], flags=re.MULTILINE
    )
    for found, model in ((section, Alerts), (mail.partition("\n## ")[0], Smtp)):
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", found, re.MULTILINE))
        assert [*rows] == [name for name in model.model_fields if name != "smtp"]
        for name, cell in rows.items():
            field = model.model_fields[name]
            default = "required" if field.is_required() else field.default
            words = "none" if default is None else "true" if default is True else str(default)
            assert cell.strip('`"') == words, name


def test_the_reference_marks_the_entries_with_defaults_for_all_tables() -> None:
    reference = (ROOT / "docs" / "lake-file.md").read_text()
    (section,) = re.findall(r"^## `\[defaults\]` (.*?)^## ", reference, re.MULTILINE | re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    of_all, of_one = (re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in tables[:2])
    assert of_all == list(Defaults.model_fields)
    assert of_one == [name for name in TablePolicy.model_fields if name not in Defaults.model_fields]


def test_the_example_in_the_reference_is_a_valid_lake_file() -> None:
    example, *_ = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "lake-file.md").read_text(), re.DOTALL)
    lake = parse_lake(example)
    assert lake.policy(TableName.parse("web.public.orders")).deletes == "soft"
    assert lake.source("web").matches("billing", "invoice_line")
    assert not lake.source("web").matches("billing", "invoice_draft")


@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
@pytest.mark.parametrize(("one", "other", "is_refused"), [(7, 7, True), (7, 8, False), (None, None, False)])
def test_two_sources_cannot_register_under_one_number(
    engine: str, one: int | None, other: int | None, is_refused: bool
) -> None:
    def section(name: str, kind: str, number: int | None) -> str:
        more = "" if number is None else f"server_id = {number}\n"
        return f'[source.{name}]\nengine = "{kind}"\ntables = ["{name}.*"]\n{more}'

    text = '[lake]\nname = "shop"\n' + section("a", "mysql", one) + section("b", engine, other)
    if is_refused:
        with pytest.raises(LakeFileError, match=r"source\.b\]\.server_id: the source a has the same number"):
            parse_lake(text)
    else:
        assert len(parse_lake(text).sources) == 2


def test_an_unknown_source_is_reported_with_the_lake_s_sources() -> None:
    with pytest.raises(LakeFileError, match=r"found shoop, expected shop\."):
        parse_lake(MINIMAL).source("shoop")


_EXPLAINED_DEFAULTS = (
    *("from the names", "a free one", "the primary key", "tributary_<lake>__<source>"),
    "where the app runs",
)

_CONNECTION_KEYS = {
    "host",
    "port",
    "user",
    "password_env",
    "admin_user",
    "admin_password_env",
    "sslmode",
    "sslrootcert",
    "connection",
}


def _file_of(lake: Lake) -> dict[str, Any]:
    """Return a file that states every value of the lake, including the defaults."""
    sources = {source.name: _entries(source.model_dump(exclude_none=True)) for source in lake.sources}
    tables = {
        str(name): _lists({key: _text(value) for key, value in entry if value not in (None, ())})
        for name, entry in lake.tables
    }
    return {
        "lake": {key: value for key in LakeSection.model_fields if (value := getattr(lake, key)) is not None},
        "source": sources,
        "defaults": {key: _text(value) for key, value in lake.defaults},
        "table": tables,
        "local": {key: value for key, value in lake.local if value is not None},
        **({} if lake.alerts is None else {"alerts": _entries(lake.alerts.model_dump(exclude_none=True))}),
        **({} if lake.verify is None else {"verify": _entries(lake.verify.model_dump())}),
        "bronze": {key: _text(value) for key, value in lake.bronze if value is not None},
        **({"registry": lake.registry.model_dump(exclude_none=True)} if lake.registry else {}),
        "derived": {name: _lists(entry.model_dump(exclude_none=True)) for name, entry in lake.derived},
    }


def _entries(values: dict[str, Any]) -> dict[str, Any]:
    return _lists(
        {key: _entries(value) if isinstance(value, dict) else _text(value) for key, value in values.items()}
    )


def _text(value: Any) -> Any:
    return f"{value // timedelta(minutes=1)}m" if isinstance(value, timedelta) else value


def _lists(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in entry.items()}


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}


def _assert_holds(whole: Any, part: Any) -> None:
    """Check that `whole` has all of `part`. The unit of a history may differ."""
    if not isinstance(part, dict):
        minutes = {"m": 1, "h": 60, "d": 1440}
        is_history = isinstance(part, str) and part[:-1].isdigit() and part[-1] in minutes
        assert whole == (f"{int(part[:-1]) * minutes[part[-1]]}m" if is_history else part)
        return
    for key, value in part.items():
        _assert_holds(whole[key], value)


def _paths_of_tables(file: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in file.items():
        if isinstance(value, dict):
            yield (*path, key)
            yield from _paths_of_tables(value, (*path, key))


def _names_an_entry(path: tuple[str, ...]) -> bool:
    """Tell whether the user chooses the names below this path."""
    return path in {("source",), ("table",), ("derived",)}


def _paths_of_values(file: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in file.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from _paths_of_values(value, (*path, key))


def _could_be_right(right: Any, value: Any) -> bool:
    return isinstance(value, type(right)) and not (isinstance(value, bool) and not isinstance(right, bool))


def _at(file: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        file = file[key]
    return file


def _assert_refused(file: dict[str, Any], path: tuple[str, ...], found: str | None = None) -> LakeFileError:
    """Check that the file is refused, and that the error has its name, the entry, found and expected."""
    with pytest.raises(LakeFileError) as caught:
        parse_lake(toml(file), where="the-file.toml")
    error = caught.value
    assert str(error.where).startswith("the-file.toml, entry ")
    for key in path:
        assert key in str(error.where).replace('\\"', '"')
    assert error.found
    assert error.expected
    assert found is None or found in error.found
    return error


def test_topics_of_another_connectors_prefix_are_the_tables_of_the_source_that_names_it() -> None:
    lake = parse_lake(MINIMAL + '[source.shop.events]\ntopic_prefix = "db.server-1"\n')
    orders = TableName("shop", "public", "orders")
    assert lake.table_of_topic("db.server-1.public.orders") == orders
    assert lake.table_of_topic("shop.shop.public.orders") == orders
    for other in ("db.server-1.public", "db.server-1.public.orders.old", "db.server-12.public.orders"):
        assert lake.table_of_topic(other) is None


@pytest.mark.parametrize(
    ("entry", "mistake"),
    [
        ('columns = { id = "bigint" }', "columns without a key"),
        ('key = ["no"]\ncolumns = { id = "bigint" }', "columns without a key"),
        (
            'key = ["id"]\ncolumns = { id = "biginteger" }',
            "for the column id, instead of .biginteger., one of boolean",
        ),
        ('key = ["id"]\ncolumns = ["id"]', "columns and their types"),
    ],
)
def test_a_mistake_in_the_columns_is_reported(entry: str, mistake: str) -> None:
    with pytest.raises(LakeFileError, match=mistake) as raised:
        parse_lake(f'{MINIMAL}[table."shop.public.orders"]\n{entry}\n')
    assert '[table."shop.public.orders"].columns' in str(raised.value)
