"""If a run ends at any request to the catalog, the next run completes the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from moto import mock_aws
from pyspark.sql.types import DataType, IntegerType, LongType, StringType

from spark_app.catalog.catalog_table import catalog_table
from spark_app.catalog.glue import GlueCatalog, glue_client
from spark_app.columns.table_columns import TableColumns
from tests.spark_app.glue import DATABASE, Glue
from tributary.contract.lake import TablePolicy

VIEWS = ("orders", "orders_ro", "orders_rt")
POLICY = TablePolicy(partition_by=("region",))


@dataclass(frozen=True)
class State:
    """The state of a table at some time."""

    types: Mapping[str, DataType]
    regions: frozenset[str]

    def show(self, glue: Glue) -> None:
        columns = TableColumns((("id", LongType()), ("region", StringType()), *self.types.items()), ("id",))
        table = catalog_table("orders", "s3a://silver/orders", "shop.public.orders", columns, POLICY)
        partitions = frozenset(f"region={region}" for region in self.regions)
        GlueCatalog(glue.client, DATABASE).show_table(table, partitions)


EARLIER = State({"amount": IntegerType()}, frozenset({"eu", "us"}))
LATER = State({"amount": LongType(), "note": StringType()}, frozenset({"us", "asia"}))


@pytest.fixture
def glue(glue_environment: None) -> Iterator[Glue]:
    """A Glue server in this process, because the tests here send some thousand requests."""
    del glue_environment
    with mock_aws():
        glue = Glue(glue_client(None))
        glue.client.meta.events.register(
            "before-call.glue", lambda model, **_: glue.requests.append(model.name)
        )
        yield glue


class EndOfProcess(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("earlier", [None, EARLIER], ids=["nothing", "an earlier state"])
@pytest.mark.parametrize("moment", ["before-send", "after-call"])
def test_whichever_request_is_a_run_s_last_the_next_run_shows_the_table_as_it_is(
    glue: Glue, moment: str, earlier: State | None
) -> None:
    begin(glue, earlier)
    glue.requests.clear()
    LATER.show(glue)
    requests, expected = len(glue.requests), shown(glue)
    assert requests >= 7

    for number in range(requests):
        begin(glue, earlier)
        with ending_at(glue, moment, number), pytest.raises(EndOfProcess):
            LATER.show(glue)
        LATER.show(glue)
        assert shown(glue) == expected


def begin(glue: Glue, earlier: State | None) -> None:
    if any(found["Name"] == DATABASE for found in glue.client.get_databases()["DatabaseList"]):
        glue.client.delete_database(Name=DATABASE)
    if earlier is not None:
        earlier.show(glue)


def shown(glue: Glue) -> Mapping[str, object]:
    return {view: (glue.columns(view), glue.partitions(view)) for view in VIEWS}


@contextmanager
def ending_at(glue: Glue, moment: str, number: int) -> Iterator[None]:
    """End the process at the request of this number, from 0: before or after Glue has received it."""
    seen = 0

    def count(**_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == number + 1:
            raise EndOfProcess

    glue.client.meta.events.register(f"{moment}.glue", count)
    try:
        yield
    finally:
        glue.client.meta.events.unregister(f"{moment}.glue", count)
