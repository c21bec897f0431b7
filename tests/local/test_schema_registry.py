"""A start looks whether the lake file's schema registry answers, before any connector needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_app.schema_registry.registry import RegistryRefused
from tests.spark_app.answering_server import Answering, answering_server
from tributary.contract.lake import Lake, parse_lake
from tributary.local.schema_registry import check_registry
from tributary.local.start_plan import REGISTRY, start_plan
from tributary.local.state import LocalSettings, StateFolder, choose_settings

UNKNOWN = {
    "confluent": '{"error_code":40403,"message":"Schema not found"}',
    "apicurio": '{"error_code":404,"name":"ArtifactNotFoundException"}',
}


def lake_with(registry: str, form: str = "avro") -> Lake:
    return parse_lake(f"""
        lake = {{ name = "shop" }}
        [registry]
        {registry}
        [source.web]
        engine = "postgres"
        format = "{form}"
        database = "web"
        tables = ["public.*"]
        """)


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering_server() as told:
        told.status = 404
        yield told


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return choose_settings(StateFolder(tmp_path), "shop", {}, frozenset())


@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_registry_of_the_kind_that_the_lake_file_names_is_taken(
    server: Answering, settings: LocalSettings, kind: str
) -> None:
    server.body = UNKNOWN[kind]
    assert check_registry(lake_with(f'kind = "{kind}"\naddress = "{server.address}"'), settings) is None
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_start_refuses_what_is_no_such_registry_or_refuses_the_login(
    server: Answering, settings: LocalSettings, kind: str
) -> None:
    lake = lake_with(f'kind = "{kind}"\naddress = "{server.address}"')
    for server.status, server.body in ((200, "<html>welcome</html>"), (404, "<html>no</html>"), (401, "")):
        with pytest.raises(RegistryRefused):
            check_registry(lake, settings)


def test_a_start_warns_of_a_registry_that_does_not_answer_and_asks_none_that_no_connector_needs(
    server: Answering, settings: LocalSettings
) -> None:
    with answering_server() as gone:
        address = gone.address
    lake = lake_with(f'kind = "confluent"\naddress = "{address}"')
    assert f"does not answer at {address}" in (check_registry(lake, settings) or "")
    server.status = 503
    lake = lake_with(f'kind = "confluent"\naddress = "{server.address}"')
    assert "answers 503" in (check_registry(lake, settings) or "")
    assert check_registry(lake_with(f'kind = "confluent"\naddress = "{address}"', "json"), settings) is None


def test_connect_waits_for_the_look_at_a_registry_that_nobody_starts_here() -> None:
    plans = {
        registry: {step.name: set(step.after) for step in start_plan(lake_with(registry), ())}
        for registry in ('kind = "apicurio"', 'kind = "apicurio"\naddress = "http://registry:8080"')
    }
    here, elsewhere = plans.values()
    looked = {"apicurio", REGISTRY}
    assert looked & elsewhere.keys() == looked & elsewhere["connect"] == {REGISTRY}
    assert looked & here.keys() == looked & here["connect"] == {"apicurio"}
