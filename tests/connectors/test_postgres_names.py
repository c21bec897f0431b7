"""The names in a source's PostgreSQL: within the server's limits, and never shared by two sources."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from connectors.engines.postgres.names import (
    publication,
    replication_role,
    replication_slot,
    replication_user,
)
from tests.contract.lake_files import LAKE_NAMES, SOURCE_NAMES
from tests.contract.test_naming import names_of_lake, names_of_source
from tests.postgres_source import postgres_source
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.naming import (
    MAX_LAKE_NAME,
    MAX_SOURCE_NAME,
    NameNotAllowed,
    lake_name_problem,
    source_name_problem,
)


def lake_of(lake: str, *sources: str) -> Lake:
    sections = [
        f'[source.{name}]\nengine = "postgres"\ndatabase = "shop"\ntables = ["*.*"]\n' for name in sources
    ]
    return parse_lake(f'[lake]\nname = "{lake}"\n{"".join(sections)}')


@given(LAKE_NAMES, LAKE_NAMES, SOURCE_NAMES, SOURCE_NAMES)
@example("a1", "a1-b", "b", "c")
@example("a1", "a1-b", "b_c", "c")
def test_no_two_lakes_share_a_slot(one: str, other: str, a: str, b: str) -> None:
    assume(one != other)
    ours, theirs = lake_of(one, a), lake_of(other, b)
    slot = replication_slot(ours, postgres_source(ours))
    assert slot != replication_slot(theirs, postgres_source(theirs))
    assert slot not in names_of_lake(theirs.names)


@given(LAKE_NAMES, SOURCE_NAMES, SOURCE_NAMES)
def test_no_two_sources_of_a_lake_share_a_slot(name: str, one: str, other: str) -> None:
    assume(one != other)
    lake = lake_of(name, one, other)
    slots = {replication_slot(lake, postgres_source(lake, source)) for source in (one, other)}
    assert len(slots) == 2
    assert not slots & (names_of_lake(lake.names) | names_of_source(lake.source_names(lake.sources[0])))


@given(
    st.from_regex(rf"[a-z][a-z0-9-]{{1,{MAX_LAKE_NAME - 1}}}", fullmatch=True),
    st.from_regex(rf"[a-z][a-z0-9_]{{0,{MAX_SOURCE_NAME - 1}}}", fullmatch=True),
)
def test_a_slot_s_name_is_within_postgresql_s_limit(lake: str, source: str) -> None:
    assume(lake_name_problem(lake) is None and source_name_problem(source) is None)
    parsed = lake_of(lake, source)
    assert re.fullmatch(r"[a-z0-9_]{1,63}", replication_slot(parsed, postgres_source(parsed)))


def test_a_name_that_postgresql_would_cut_off_is_refused() -> None:
    lake = lake_of("shop", "web")
    source = PostgresSource(engine="postgres", database="shop", tables=("*.*",))
    fits = source.named("a" * 47)
    assert len(replication_slot(lake, fits)) == 63
    with pytest.raises(NameNotAllowed, match=r"64 bytes, expected 63 bytes at most"):
        replication_slot(lake, source.named("a" * 48))


def test_the_names_of_the_demo_are_as_documented() -> None:
    lake = lake_of("tickit", "shop")
    source = postgres_source(lake)
    assert replication_slot(lake, source) == "tributary_tickit__shop"
    assert {name(lake, source) for name in (publication, replication_role, replication_user)} == {
        "tributary_tickit__shop"
    }
