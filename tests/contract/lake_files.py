"""Valid lake files for property tests, as the nested values that TOML holds and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from tributary.contract.table_name import TableName

LAKE_NAMES = st.from_regex(r"[a-z][a-z0-9]{1,7}(-[a-z0-9]{1,5}){0,2}", fullmatch=True)
SOURCE_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,7}(_[a-z0-9]{1,5}){0,2}", fullmatch=True)

TROUBLEMAKERS = " _-.,;:$%*?!'\"\\{}()[]|^+#\n\t\x01afAF09\u0100ł\u0fffé\u1000ᐪ中😀"
IDENTIFIERS = st.text(
    st.sampled_from(TROUBLEMAKERS) | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    min_size=1,
    max_size=12,
)
"""Quoted names that PostgreSQL accepts."""

PLAIN = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
COLUMNS = st.lists(IDENTIFIERS, min_size=1, max_size=3, unique=True)
# Neither a part of a key column nor its name in a table.
PARTITIONS = COLUMNS.map(lambda names: [name.replace("(", "[").replace("__", "_") for name in names])
REGIONS = st.sampled_from(["eu-west-1", "us-gov-west-1"])
VARIABLES = st.from_regex(r"[A-Z][A-Z_]{0,9}", fullmatch=True)


def some(required: Mapping[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> Any:
    return st.fixed_dictionaries(dict(required), optional=optional)


DURATIONS = st.builds("{}{}".format, st.integers(1, 3650), st.sampled_from("mhd"))
BRONZE = some({}, retention=DURATIONS, erase=st.booleans())
POLICIES: Mapping[str, st.SearchStrategy[Any]] = {
    "storage": st.sampled_from(["merge_on_read", "copy_on_write"]),
    "deletes": st.sampled_from(["hard", "soft"]),
    "history": DURATIONS,
    "longest_query": DURATIONS,
    "buckets": st.integers(1, 1024),
    "repair": st.sampled_from(["automatic", "manual"]),
    "quarantine_limit": st.builds("{}%".format, st.integers(0, 100)) | st.integers(0, 10**9 - 1).map(str),
}


HIDDEN: Mapping[str, st.SearchStrategy[Any]] = {
    # None of these is a column of COLUMNS.
    "leave_out": st.just(["hidden column, left out", "hidden_1?"]),
    "mask": st.just(["hidden_2"]),
    "hash": st.just(["hidden_3", "hidden_4?"]),
    "rows": st.just("hidden_5 > 'a, b'"),
}


@st.composite
def connections(draw: st.DrawFn) -> dict[str, Any]:
    connection: dict[str, Any] = draw(
        some(
            {"host": st.sampled_from(["localhost", "10.0.0.1", "db-1.example.org"])},
            port=st.integers(1, 65535),
            user=PLAIN,
            sslmode=st.sampled_from(["disable", "allow", "prefer", "require"]),
        )
    )
    if draw(st.booleans()):
        connection |= {"sslmode": "verify-full", "sslrootcert": "/etc/certificates.pem"}
    who = draw(st.sampled_from(["a password", "an administrator", "both"]))
    if who != "an administrator":
        connection["password_env"] = draw(VARIABLES)
    if who != "a password":
        connection |= {"admin_user": "Ädmin", "admin_password_env": draw(VARIABLES)}
    return connection


ADDRESSES = st.from_regex(r"[a-z]{1,5}@[a-z]{1,5}\.example", fullmatch=True)
ALERTS = some(
    {"webhook_env": VARIABLES},
    freshness=DURATIONS,
    lag=st.integers(0, 10**9),
    quarantine=st.integers(0, 10**9),
    verified=DURATIONS,
    blocked=st.just(True),
    smtp=some(
        {
            "host": st.just("mail.example"),
            "sender": ADDRESSES,
            "recipients": st.lists(ADDRESSES, min_size=1, max_size=2, unique=True),
        },
        port=st.integers(1, 65535),
        security=st.sampled_from(["starttls", "tls", "none"]),
    )
    | some(
        {
            "host": st.just("mail.example"),
            "sender": ADDRESSES,
            "recipients": st.lists(ADDRESSES, min_size=1, max_size=2, unique=True),
            "user": PLAIN,
            "password_env": VARIABLES,
        },
        security=st.sampled_from(["starttls", "tls"]),
    ),
)
LAKE = some(
    {"name": LAKE_NAMES},
    max_event_mb=st.integers(1, 512),
    acceleration=st.sampled_from(["auto", "off", "required"]),
    hash_salt_env=VARIABLES,
)
PORTS = [f"{service}_port" for service in ("postgres", "mariadb", "kafka", "connect", "s3", "apicurio")] + [
    "dynamodb_port",
    "kinesis_port",
]
LOCAL = some({}, item_disorder=st.booleans(), spark_memory=st.sampled_from(["1500m", "3g"]))


VERIFY = some(
    {},
    interval=DURATIONS,
    rows=st.integers(1_000, 10**9),
    load=st.builds("{}%".format, st.integers(1, 100)),
    statement_seconds=st.integers(1, 3600),
    repair=st.booleans(),
)


def _with_what_has_a_format(derived: dict[str, Any]) -> dict[str, Any]:
    """Return the entries without the formats of outputs that the table does not have."""
    lacking = [("topic_format", "topic"), ("format", "folder")]
    return {
        name: value
        for name, value in derived.items()
        if not any(name == option and of not in derived for option, of in lacking)
    }


def _with_outputs_of_their_own(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the derived tables with topics and folders that no other one has."""
    return {
        name: table | {output: f"{table[output]}.{name}" for output in ("topic", "folder") if output in table}
        for name, table in tables.items()
    }


DERIVED = st.dictionaries(
    st.from_regex(r"totals_[a-z]{1,4}", fullmatch=True),
    some(
        {"key": st.just(["country", "year"]), "sql": st.just("SELECT country, year FROM sales")},
        topic=st.just("shop.totals"),
        topic_format=st.sampled_from(["json", "avro"]),
        folder=st.sampled_from(["s3://shop-files/totals", "/tmp/totals"]),
        format=st.sampled_from(["csv", "parquet"]),
        console=st.booleans(),
    ).map(_with_what_has_a_format),
    min_size=1,
    max_size=2,
).map(_with_outputs_of_their_own)


@st.composite
def registries(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["apicurio", "confluent", "glue"]))
    if kind == "glue":
        return {
            "kind": kind,
            **draw(some({}, name=PLAIN, region=REGIONS)),
        }
    address = draw(st.sampled_from([None, "http://localhost:8080", "https://registry.example.org/api/v1"]))
    if address is None:
        return {"kind": kind}
    login = {"user": draw(PLAIN), "password_env": draw(VARIABLES)} if draw(st.booleans()) else {}
    return {"kind": kind, "address": address, **login}


@st.composite
def outboxes(draw: st.DrawFn, schema: str) -> dict[str, Any]:
    """Return an outbox in the schema, whose table no entry of a table names."""
    columns = draw(
        st.lists(PLAIN.filter(lambda name: name != "payload"), min_size=5, max_size=5, unique=True)
    )
    names = dict(zip(("id", "type", "key"), columns, strict=False))
    return {
        "table": f"{schema}.the_outbox",
        "lake_schema": f"{schema}_events",
        **names,
        **({"columns": columns[3:]} if draw(st.booleans()) else {}),
        **({"payload": draw(PLAIN)} if draw(st.booleans()) else {}),
    }


@st.composite
def lake_files(draw: st.DrawFn) -> dict[str, Any]:
    """Return a valid file. Each table entry names a table that a whole-schema pattern of its source takes."""
    sources: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for name in draw(st.lists(SOURCE_NAMES, min_size=1, max_size=3, unique=True)):
        schema = draw(PLAIN.filter(lambda schema: schema != "tributary"))
        sources[name] = draw(
            some(
                {
                    "engine": st.just("postgres"),
                    "database": PLAIN,
                    "tables": st.just([f"{schema}.*", f"!{schema}.zz?"]),
                },
                partitions=st.integers(1, 256),
                connection=connections(),
                format=st.sampled_from(["json", "avro"]),
            )
        )
        if sources[name].get("format") != "avro" and draw(st.booleans()):
            sources[name]["outbox"] = draw(outboxes(schema))
        for table in draw(st.lists(PLAIN.filter(lambda table: len(table) < 3), max_size=2, unique=True)):
            entry = some({}, **POLICIES, key=COLUMNS, partition_by=PARTITIONS, **HIDDEN)
            tables[str(TableName(name, schema, table))] = draw(entry)
    ports = draw(st.lists(st.integers(1, 65535), min_size=len(PORTS), max_size=len(PORTS), unique=True))
    local = draw(LOCAL) | {name: port for name, port in zip(PORTS, ports, strict=True) if draw(st.booleans())}
    derived = draw(DERIVED) if draw(st.booleans()) and "derived" not in sources else {}
    writes_avro = any(source.get("format") == "avro" for source in sources.values()) or any(
        table.get("topic_format") == "avro" for table in derived.values()
    )
    return {
        "lake": draw(LAKE),
        **({"registry": draw(registries())} if writes_avro or draw(st.booleans()) else {}),
        "source": sources,
        **({"defaults": draw(some({}, **POLICIES))} if draw(st.booleans()) else {}),
        **({"table": tables} if tables else {}),
        **({"local": local} if local else {}),
        **({"alerts": draw(ALERTS)} if draw(st.booleans()) else {}),
        **({"verify": draw(VERIFY)} if draw(st.booleans()) else {}),
        **({"derived": derived} if derived else {}),
        **({"bronze": draw(BRONZE)} if draw(st.booleans()) else {}),
    }


def toml(file: Mapping[str, Any]) -> str:
    """Return the file's text. All tables are inline, because TOML writes their keys and strings like JSON."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in file.items())


def _value(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case str():
            return _key(value)
        case _:
            return json.dumps(value)


def _key(text: str) -> str:
    return '"' + "".join(_escaped(text)) + '"'


def _escaped(text: str) -> Iterable[str]:
    for character in text:
        is_special = character in '"\\' or not character.isprintable()
        yield f"\\U{ord(character):08x}" if is_special else character
