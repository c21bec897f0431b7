"""`[aws.items.NAME]`: the stream and the tables of items that the lake itself creates on AWS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from tributary.contract.entries import Duration, Entry, Problem, expecting, matching, toml_key
from tributary.contract.item_stream import ITEM_SCHEMA

if TYPE_CHECKING:
    from tributary.contract.source import Source

KeyType = Literal["string", "number", "binary"]
Capacity = Literal["on-demand", "provisioned"]

_SHORTEST, _LONGEST = timedelta(hours=24), timedelta(days=365)


def _hours(duration: timedelta) -> timedelta:
    if not _SHORTEST <= duration <= _LONGEST or duration % timedelta(hours=1):
        raise expecting('whole hours from "24h" to "365d"')
    return duration


Hours = Annotated[Duration, AfterValidator(_hours)]
AttributeName = Annotated[str, matching(r"[^\x00-\x1f]{1,255}", "the name of an attribute")]


class OwnItemTable(Entry):
    """`[aws.items.NAME.tables.TABLE]`: a table that the lake creates, and its key."""

    partition_key: AttributeName
    partition_key_type: KeyType = "string"
    sort_key: AttributeName | None = None
    sort_key_type: KeyType = "string"

    @model_validator(mode="after")
    def _two_attributes(self) -> OwnItemTable:
        if self.sort_key == self.partition_key:
            raise expecting("sort_key = another attribute than partition_key")
        return self


class OwnItems(Entry):
    """The stream that the lake creates for a source of items, and the tables that send their changes there.

    capacity   who decides on the shards: AWS, by what is written, or `shards`
    shards     None: one, if the capacity is provisioned
    retention  how long the stream keeps a record
    tables     by their names. Without any, the tables exist already, and somebody lets them use the stream.
    """

    capacity: Capacity = "on-demand"
    shards: Annotated[int, Field(ge=1, le=500)] | None = None
    retention: Hours = timedelta(hours=24)
    tables: dict[str, OwnItemTable] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _shards_of_somebody(self) -> OwnItems:
        if self.shards is not None and self.capacity == "on-demand":
            raise expecting('shards only with capacity = "provisioned"')
        return self


def items_problems(items: Mapping[str, OwnItems], sources: Mapping[str, Source]) -> Iterator[Problem]:
    """Yield what is wrong with the lake's own streams for these sources. Both are by the source's name."""
    streams: dict[str, str] = {}
    for name, own in items.items():
        entry = f"[aws.items.{toml_key(name)}]"
        source = sources.get(name)
        if source is None:
            yield Problem(entry, "a stream of an unknown source", name, " or ".join(sources))
            continue
        stream = source.item_stream
        if stream is None:
            what, expected = (
                "a stream for a source that has none",
                "a source of an engine with streams of items",
            )
            yield Problem(entry, what, f'engine = "{source.engine}"', expected)
            continue
        if stream.arn is not None or stream.region is not None:
            yield Problem(
                f"[source.{toml_key(name)}]",
                "a stream that the lake creates is in the lake's own account and region",
                stream.arn or f'region = "{stream.region}"',
                "stream = a name, and no region",
            )
        if (other := streams.setdefault(stream.name, name)) != name:
            yield Problem(entry, "two sources with the same stream of the lake's own", stream.name, other)
        for table in own.tables:
            if not source.matches(ITEM_SCHEMA, table):
                what = "a table that its source does not take"
                expected = f"a table that [source.{toml_key(name)}].tables takes"
                yield Problem(f"{entry}.tables", what, table, expected)
