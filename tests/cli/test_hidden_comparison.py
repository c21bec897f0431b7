"""The database's rows are compared as the connector sends them: hidden, and only those that may leave."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pytest
from pydantic import SecretStr

from connectors.engines.engine import DatabaseColumn, DatabaseTable
from connectors.engines.forms import BOOLEAN, BYTES, DATE, INTEGER, TEXT
from tributary.contract.hidden_columns import MASK
from tributary.contract.lake import TablePolicy, parse_lake
from tributary.local.hash_salt import SaltMissing, hash_salt
from tributary.local.state import LocalSettings, Ports, Secrets
from tributary.operations.reconcile.comparison import Kind, compare
from tributary.operations.reconcile.hidden import Hiding
from tributary.operations.reconcile.pairing import comparable_lake_rows, pair

SALT = b"a salt"
FORMS = {
    "id": INTEGER,
    "ssn": TEXT,
    "phone": INTEGER,
    "email": TEXT,
    "photo": BYTES,
    "is_new": BOOLEAN,
    "born": DATE,
}
TABLE = DatabaseTable(
    "public", "t", tuple(DatabaseColumn(name, "t", form) for name, form in FORMS.items()), ("id",)
)
POLICY = TablePolicy(
    leave_out=("ssn",), mask=("phone", "later?"), hash=("email", "photo", "is_new", "born"), rows="id > 0"
)
DATABASE = {
    "id": [1, 2],
    "ssn": ["x", "y"],
    "phone": [7, None],
    "email": ["a@b", None],
    "photo": [b"\0\xff", b""],
    "is_new": [True, False],
    "born": [1, 2],
}


def _hash(content: bytes) -> str:
    return hmac.digest(SALT, content, "sha256").hex()


LAKE: Mapping[str, Sequence[object]] = {
    "id": [1, 2],
    "phone": [MASK, MASK],
    "email": [_hash(b"a@b"), None],
    "photo": [_hash(b"\0\xff"), _hash(b"")],
    "is_new": [_hash(b"true"), _hash(b"false")],
    "born": ["h1", "h2"],
}


def _differences(lake: Mapping[str, Sequence[object]]) -> list[tuple[Kind, set[str]]]:
    """Compare the database with this lake. Check which rows and columns are read."""
    rows = pa.table(dict(lake))
    hiding = Hiding(POLICY, TABLE, rows.schema, SALT)
    pairing = pair(hiding.sent, rows.schema, ("id",), hiding.left_out)
    assert pairing.left_out == ("ssn",)
    assert pairing.uncompared == ("born",)
    assert not {"ssn", "born"} & set(pairing.forms)

    def read(table: DatabaseTable, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        assert table.condition == "id > 0"
        wanted = list(columns)
        assert not {"ssn", "phone", "born"} & set(wanted)
        schema = pa.schema([(name, FORMS[name].arrow) for name in wanted])
        yield pa.RecordBatch.from_pydict({name: DATABASE[name] for name in wanted}, schema=schema)

    found = compare(
        hiding.read(read, pairing.schema), comparable_lake_rows(rows, pairing), pairing.schema, pairing.key
    )
    shown = [pairing.forms[c.column].show(c.lake) for one in found.differences for c in one.cells]
    assert not any("a@b" in text for text in shown)
    return [(one.kind, {cell.column for cell in one.cells}) for one in found.differences]


def test_a_lake_with_masks_and_hashes_is_identical() -> None:
    assert _differences(LAKE) == []


def test_a_row_from_before_a_masked_column_has_no_mask() -> None:
    assert _differences({**LAKE, "phone": [MASK, None]}) == []
    without = {name: values for name, values in LAKE.items() if name != "phone"}
    assert _differences(without) == []


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("phone", [MASK, "7"]),
        ("email", ["a@b", None]),
        ("email", [_hash(b"a@c"), None]),
        ("email", [_hash(b"a@b"), _hash(b"")]),
    ],
)
def test_a_clear_or_a_wrong_value_is_found_and_not_shown(column: str, values: list[object]) -> None:
    assert _differences({**LAKE, column: values}) == [(Kind.CHANGED, {column})]


def test_a_table_without_hidden_columns_is_compared_as_it_is() -> None:
    hiding = Hiding(TablePolicy(), TABLE, pa.schema([]), None)
    assert hiding.sent is TABLE
    assert hiding.left_out == ()


def test_the_salt_comes_from_the_environment_or_is_one_for_all_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = '[lake]\nname = "shop"\nENTRY\n[source.a]\nengine = "mysql"\ntables = ["a.*"]'
    own, generated = (
        parse_lake(text.replace("ENTRY", entry)) for entry in ('hash_salt_env = "LAKE_SALT"', "")
    )
    secrets = Secrets(**dict.fromkeys(Secrets.model_fields, SecretStr("secret of this folder")))
    ports = Ports(postgres=1, kafka=2, kafka_controller=3, connect=4, s3=5)
    settings = LocalSettings(lake="shop", kafka_cluster_id="k", ports=ports, secrets=secrets)

    salt = hash_salt(generated, settings).get_secret_value()
    assert len(salt) == 64
    assert salt != secrets.replication_password("a").get_secret_value()
    for wrong in ("", "tiny-salt", " blanks around the salt "):
        monkeypatch.setenv("LAKE_SALT", wrong)
        with pytest.raises(SaltMissing, match="LAKE_SALT") as error:
            hash_salt(own, settings)
        assert not wrong.strip() or wrong not in str(error.value)
    monkeypatch.setenv("LAKE_SALT", "a long enough salt")
    assert hash_salt(own, settings).get_secret_value() == "a long enough salt"
