"""Generated items: plain Python values, and the same in DynamoDB's form and in its records."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

Plain = Any
"""str, Decimal, bytes, bool, None, a frozenset of one of the first three, a list, or a dict."""

_EXACT = Context(prec=100)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_SIGNIFICANT = st.integers(1, 38).flatmap(lambda digits: st.integers(-(10**digits) + 1, 10**digits - 1))
NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64).map(Decimal),
    st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent, _EXACT), _SIGNIFICANT, st.integers(-40, 5)
    ),
    st.decimals("-1000", "1000", places=2),
    st.sampled_from(["1E-130", "9.9999999999999999999999999999999999999E+125", "0", "-0", "10.50"]).map(
        Decimal
    ),
)
_BYTES = st.binary(max_size=6)
_SETS = st.one_of(*[st.frozensets(values, min_size=1, max_size=3) for values in (_TEXTS, NUMBERS, _BYTES)])
_SCALARS = st.one_of(_TEXTS, NUMBERS, _BYTES, st.booleans(), st.none())
VALUES = st.recursive(
    st.one_of(_SCALARS, _SETS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=5,
)

ATTRIBUTES = st.sampled_from(
    ["total", "Total", "state", "tags", "ship-to", "9lives", "größe", "_key", "attributes"]
)
ITEMS = st.dictionaries(ATTRIBUTES, VALUES, max_size=4)


def attribute(value: Plain) -> dict[str, Any]:
    """Return a plain value in DynamoDB's form."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case Decimal():
            return {"N": str(value)}
        case bytes():
            return {"B": base64.b64encode(value).decode()}
        case frozenset():
            ((kind, _),) = {next(iter(attribute(each).items())) for each in list(value)[:1]}
            return {f"{kind}S": [attribute(each)[kind] for each in value]}
        case list():
            return {"L": [attribute(each) for each in value]}
        case dict():
            return {"M": {name: attribute(each) for name, each in value.items()}}
    raise AssertionError(value)


def item(values: Mapping[str, Plain]) -> dict[str, Any]:
    return {name: attribute(value) for name, value in values.items()}


@dataclass(frozen=True)
class Sent:
    """A change of the item with key `id`. `values` are None for a delete."""

    id: str
    time_us: int
    values: Mapping[str, Plain] | None
    by_ttl: bool = False
    in_milliseconds: bool = False
    table: str = "orders"

    @property
    def data(self) -> bytes:
        keys = {"id": {"S": self.id}}
        change: dict[str, Any] = {
            "ApproximateCreationDateTime": self.time_us // 1000 if self.in_milliseconds else self.time_us,
            "Keys": keys,
            "SizeBytes": 1,
        }
        if not self.in_milliseconds:
            change["ApproximateCreationDateTimePrecision"] = "MICROSECOND"
        if self.values is not None:
            change["NewImage"] = {**item(self.values), **keys}
        identity = {"principalId": "dynamodb.amazonaws.com", "type": "Service"} if self.by_ttl else None
        record = {
            "awsRegion": "eu-central-1",
            "eventID": "8ffd4a5c",
            "eventName": "REMOVE" if self.values is None else "MODIFY",
            "userIdentity": identity,
            "recordFormat": "application/json",
            "tableName": self.table,
            "dynamodb": change,
            "eventSource": "aws:dynamodb",
        }
        return json.dumps(record, separators=(",", ":")).encode()
