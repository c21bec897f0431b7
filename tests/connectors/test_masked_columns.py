"""Hidden columns: Debezium takes the rendered options, and our transform lets no value pass."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.deployment import ConnectorConfig
from connectors.engines.registry import engine_of
from tests.connectors.deployments import local_deployment
from tributary.contract.hidden_columns import MASK
from tributary.contract.lake import Lake, parse_lake

SALT = "a salt that nobody knows"
PLACEHOLDER = "__debezium_unavailable_value"
LAKE = """
[lake]
name = "shop"

[source.web]
engine = "ENGINE"
DATABASE
tables = ["public.*"]

[table."web.public.customers"]
leave_out = ["ssn", "old,one"]
mask = ["phone"]
hash = ["email", "mail?"]
ROWS

[table."web.public.Odd Näme"]
mask = ["phone"]
"""
TOPIC = "tributary.shop.web.public.customers"


def _lake(engine: str = "postgres", rows: str = "country = 'DE'") -> Lake:
    is_postgres = engine == "postgres"
    text = LAKE.replace("ENGINE", engine).replace("DATABASE", 'database = "app"' if is_postgres else "")
    return parse_lake(text.replace("ROWS", f'rows = "{rows}"' if is_postgres else ""))


def _rendered(lake: Lake) -> ConnectorConfig:
    return engine_of(lake.sources[0]).render(lake, lake.sources[0], local_deployment(lake))


@pytest.mark.parametrize("engine", ["postgres", "mysql", "mariadb"])
def test_the_config_names_the_columns_and_never_the_salt(engine: str) -> None:
    lake = _lake(engine)
    config = _rendered(lake).config
    topic = lake.source_names(lake.sources[0]).topic("public", "customers")
    assert config[f"transforms.maskedColumns.mask.{topic}"] == "phone"
    assert config[f"transforms.maskedColumns.hash.{topic}"] == "email,mail?"
    assert config[f"transforms.maskedColumns.key.{topic}"] == "ssn"
    assert config["transforms.maskedColumns.salt.password"] == "${directory:/state/secrets:hash-salt}"
    assert config["transforms"].split(",")[-1] == "maskedColumns"


def test_a_lake_without_hidden_columns_has_no_such_options() -> None:
    lake = parse_lake(_without_tables(_text_of("postgres")))
    config = engine_of(lake.sources[0]).render(lake, lake.sources[0], local_deployment(lake)).config
    assert not [name for name in config if "masked" in name or "overrides" in name or "column.ex" in name]


def _text_of(engine: str) -> str:
    return LAKE.replace("ENGINE", engine).replace("DATABASE", 'database = "app"')


def _without_tables(text: str) -> str:
    return text.partition("[table.")[0]


def test_a_snapshot_reads_only_the_wanted_rows() -> None:
    config = _rendered(_lake()).config
    option = "snapshot.select.statement.overrides"
    assert config[option] == "public.customers"
    wanted = """SELECT * FROM "public"."customers" WHERE (country = 'DE')"""
    assert config[f"{option}.public.customers"] == wanted


@pytest.mark.slow
def test_debezium_leaves_out_exactly_the_columns_that_the_lake_file_names(jvm: Any) -> None:
    options = _rendered(_lake()).config
    configuration = getattr(jvm.io.debezium.config.Configuration, "from")(dict(options))
    postgres = jvm.io.debezium.connector.postgresql.PostgresConnectorConfig
    config = postgres(configuration)
    checked = configuration.validate(postgres.ALL_FIELDS)
    assert not [error for value in checked.values() for error in value.errorMessages()]

    def passes(table: str, column: str) -> bool:
        return bool(config.getColumnFilter().matches("app", "public", table, column))

    assert not passes("customers", "ssn")
    assert not passes("customers", "old,one")
    for table, column in [
        ("customers", "SSN"),
        ("customers", "ssn2"),
        ("customers", "email"),
        ("customers2", "ssn"),
        ("Customers", "ssn"),
    ]:
        assert passes(table, column)
    overridden = config.getSnapshotSelectOverridesByTable()
    table = jvm.io.debezium.relational.TableId(None, "public", "customers")
    assert len(overridden) == 1
    assert "country = 'DE'" in overridden.get(table)


class _Transform:
    """Our transform as Connect would configure it, between two JSON converters."""

    def __init__(self, jvm: Any, options: Mapping[str, str]) -> None:
        self._connect = jvm.org.apache.kafka.connect
        self._transform = jvm.io.tributary.connect.MaskedColumns()
        self._transform.configure(dict(options))
        self._json = self._connect.json.JsonConverter()
        self._json.configure({"schemas.enable": "true", "replace.null.with.default": "false"}, False)
        self._keys = self._connect.json.JsonConverter()
        self._keys.configure({"schemas.enable": "true"}, True)

    def __call__(self, value: Any, topic: str = TOPIC, key: Any = None) -> Any:
        """Return the value with its schema after the transform."""
        came = self._json.toConnectData(topic, None if value is None else json.dumps(value).encode())
        its_key = self._keys.toConnectData(topic, json.dumps(key or _key("id")).encode())
        record = self._connect.source.SourceRecord(
            {"server": "shop"},
            {"lsn": 1},
            topic,
            its_key.schema(),
            its_key.value(),
            came.schema(),
            came.value(),
        )
        found = self._transform.apply(record)
        assert dict(found.sourceOffset()) == {"lsn": 1}
        sent = self._json.fromConnectData(topic, found.valueSchema(), found.value())
        return None if sent is None else json.loads(bytes(sent))


def _key(*names: str) -> Any:
    fields = [{"field": name, "type": "int32", "optional": False} for name in names]
    return {"schema": {"type": "struct", "fields": fields}, "payload": dict.fromkeys(names, 1)}


TYPES: Mapping[str, Any] = {
    "string": {"type": "string"},
    "int32": {"type": "int32"},
    "int64": {"type": "int64", "default": 7},
    "boolean": {"type": "boolean"},
    "bytes": {"type": "bytes"},
    "date": {"type": "int32", "name": "io.debezium.time.Date", "version": 1},
    "number": {"type": "string", "parameters": {"__debezium.source.column.type": "NUMERIC"}},
    "array": {"type": "array", "items": {"type": "string", "optional": True}},
    "integers": {"type": "array", "items": {"type": "int32", "optional": True}},
    "map": {"type": "map", "keys": {"type": "string"}, "values": {"type": "string", "optional": True}},
}
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
    "bytes": st.binary().map(lambda value: base64.b64encode(value).decode()),
    "date": st.integers(-1000, 1000),
    "number": st.decimals(allow_nan=False, allow_infinity=False).map(str),
    "array": st.lists(st.text(), max_size=3),
    "integers": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
    "map": st.dictionaries(st.text(min_size=1), st.text(), max_size=2),
}


def _event(columns: Mapping[str, str], after: Any, before: Any = None) -> Any:
    fields = [{**TYPES[kind], "field": name, "optional": True} for name, kind in columns.items()]
    row = {"type": "struct", "fields": fields, "optional": True, "name": "row"}
    source = {
        "type": "struct",
        "field": "source",
        "optional": False,
        "fields": [{"type": "string", "field": "table", "optional": False}],
    }
    schema = {
        "type": "struct",
        "name": "envelope",
        "version": 2,
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            source,
            {"type": "string", "field": "op", "optional": False},
            {"type": "int64", "field": "ts_ms", "optional": True},
        ],
    }
    payload = {"before": before, "after": after, "source": {"table": "customers"}, "op": "u", "ts_ms": 5}
    return {"schema": schema, "payload": payload}


@pytest.fixture(scope="module")
def transform(jvm: Any) -> _Transform:
    return _Transform(
        jvm,
        {
            f"mask.{TOPIC}": "phone",
            f"hash.{TOPIC}": "email,mail?",
            f"key.{TOPIC}": "ssn",
            "salt.password": SALT,
        },
    )


@pytest.mark.slow
@given(data=st.data())
@settings(deadline=None, max_examples=80)
def test_no_value_of_a_hidden_column_passes_and_all_others_do(
    transform: _Transform, data: st.DataObject
) -> None:
    columns = {name: data.draw(st.sampled_from(sorted(TYPES))) for name in ("id", "phone", "email", "note")}
    rows = [
        {name: data.draw(st.none() | VALUES[kind]) for name, kind in columns.items()} for _ in ("old", "new")
    ]
    event = _event(columns, rows[0], data.draw(st.none() | st.just(rows[1])))
    sent = transform(event)

    assert {**sent["payload"], "before": None, "after": None} == {
        **event["payload"],
        "before": None,
        "after": None,
    }
    for side in ("before", "after"):
        came, went = event["payload"][side], sent["payload"][side]
        if came is None:
            assert went is None
            continue
        assert went["phone"] == MASK
        assert (went["id"], went["note"]) == (came["id"], came["note"])
        assert (went["email"] is None) == (came["email"] is None)
        if came["email"] is not None and columns["email"] in ("string", "int32", "int64", "bytes", "boolean"):
            assert went["email"] == _expected(columns["email"], came["email"])
    for field in sent["schema"]["fields"][:2]:
        types = {column["field"]: column for column in field["fields"]}
        for hidden in ("phone", "email"):
            assert types[hidden] == {"field": hidden, "type": "string", "optional": True}


def _expected(kind: str, value: Any) -> str:
    match kind:
        case "bytes":
            content = base64.b64decode(value)
        case "boolean":
            content = str(value).lower().encode()
        case _:
            content = str(value).encode()
    return hmac.digest(SALT.encode(), content, "sha256").hex()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "unavailable"),
    [
        ("string", PLACEHOLDER),
        ("bytes", base64.b64encode(PLACEHOLDER.encode()).decode()),
        ("array", [PLACEHOLDER]),
        ("integers", list(PLACEHOLDER.encode())),
        ("map", {PLACEHOLDER: PLACEHOLDER}),
        ("string", json.dumps({PLACEHOLDER: PLACEHOLDER}, separators=(",", ":"))),
    ],
)
def test_an_unchanged_toast_value_stays_unknown(transform: _Transform, kind: str, unavailable: Any) -> None:
    event = _event(dict.fromkeys(("phone", "email"), kind), {"phone": unavailable, "email": unavailable})
    assert transform(event)["payload"]["after"] == {"phone": MASK, "email": PLACEHOLDER}


@pytest.mark.slow
def test_a_missing_column_stops_the_connector_unless_it_may_be_missing(transform: _Transform) -> None:
    renamed = _event({"phone": "string", "e_mail": "string"}, {"phone": "1", "e_mail": "secret"})
    with pytest.raises(Exception, match=r"column email of .* is missing.*email\?"):
        transform(renamed)
    listed = {"phone": "string", "email": "string", "mail": "string"}
    assert transform(_event(listed, {"phone": "1", "email": "a", "mail": "b"}))


@pytest.mark.slow
@pytest.mark.parametrize("column", ["phone", "email", "mail", "ssn"])
def test_a_hidden_column_in_the_key_stops_the_connector(transform: _Transform, column: str) -> None:
    event = _event({"phone": "string", "email": "string"}, {"phone": "1", "email": "a"})
    with pytest.raises(Exception, match=f"column {column} is part of the key"):
        transform(event, key=_key("id", column))


@pytest.mark.slow
def test_tombstones_truncates_and_other_topics_pass(transform: _Transform) -> None:
    assert transform(None) is None
    event = _event({"phone": "string", "email": "string"}, {"phone": "1", "email": "a"})
    assert transform(event, topic="another")["payload"] == event["payload"]
    truncate = _event({"phone": "string", "email": "string"}, None)
    assert transform(truncate)["payload"] == truncate["payload"]
    with pytest.raises(Exception, match="no change event"):
        transform({"schema": {"type": "string", "optional": False}, "payload": "a message"})


@pytest.mark.slow
@pytest.mark.parametrize("salt", ["", " ", "${directory:/state/secrets:hash-salt}"])
def test_without_a_salt_nothing_is_hashed(jvm: Any, salt: str) -> None:
    with pytest.raises(Exception, match="salt of hashed columns is missing"):
        _Transform(jvm, {f"hash.{TOPIC}": "email", "salt.password": salt})
    _Transform(jvm, {f"mask.{TOPIC}": "phone", "salt.password": salt})
    parsed = jvm.io.tributary.connect.MaskedColumns().config().parse({"salt.password": SALT})
    assert SALT not in str(parsed)  # So Connect logs it as [hidden].
