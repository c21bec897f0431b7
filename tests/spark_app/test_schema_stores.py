"""A registry keeps the schemas of derived tables' messages, and readers find them by the ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from spark_app.schema_registry.framing import SchemaId
from spark_app.schema_registry.glue import GlueRegistry
from spark_app.schema_registry.http import ApicurioRegistry, ConfluentRegistry, Login
from spark_app.schema_registry.opened import open_store
from spark_app.schema_registry.registry import KeptIds, RegistryAway, RegistryRefused, SchemaRefused
from tests.spark_app.answering_server import Answering, answering_server
from tests.spark_app.registries import running_apicurio
from tributary.contract.lake import parse_lake

REGISTRY, TOPIC = "made-by-stacks", "shop.totals"
LONG = '{"type":"record","name":"totals","fields":[{"name":"total","type":["null","long"],"default":null}]}'
TEXT = LONG.replace("long", "string")


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering_server() as told:
        yield told


def test_confluents_registry_gets_the_schema_under_the_name_that_its_clients_look_for(
    server: Answering,
) -> None:
    server.body = '{"id":300}'
    registry = ConfluentRegistry(server.address, Login("ann", "pass:word"))
    assert registry.add(TOPIC, LONG) == SchemaId("int32", "0000012c")
    (request,) = server.asked
    assert (request.path, request.login) == (
        "/subjects/shop.totals-value/versions",
        "Basic YW5uOnBhc3M6d29yZA==",
    )
    assert json.loads(request.body) == {"schema": LONG}


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        (409, '{"error_code":409,"message":"incompatible with an earlier schema"}', SchemaRefused),
        (422, '{"error_code":42201,"message":"Invalid Avro schema"}', SchemaRefused),
        (401, '{"error_code":40101}', RegistryRefused),
        (404, "<html>nothing here</html>", RegistryRefused),
        (200, "<html>welcome</html>", RegistryRefused),
        (200, '{"other":1}', RegistryRefused),
        (500, '{"error_code":50001}', RegistryAway),
    ],
)
def test_an_answer_to_a_new_schema(
    server: Answering, status: int, body: str, raised: type[Exception]
) -> None:
    server.status, server.body = status, body
    for registry in (ConfluentRegistry(server.address), ApicurioRegistry(server.address)):
        with pytest.raises(raised):
            registry.add(TOPIC, LONG)


def test_a_refused_schema_is_told_with_the_topic_the_reason_and_what_to_do(server: Answering) -> None:
    server.status, server.body = 409, '{"message":"total changed its type"}'
    with pytest.raises(SchemaRefused) as refused:
        ConfluentRegistry(server.address).add(TOPIC, TEXT)
    for part in (TOPIC, "total changed its type", "another topic"):
        assert part in str(refused.value)


def test_a_registry_is_asked_for_each_schema_of_a_topic_once(server: Answering) -> None:
    server.body = '{"id":7}'
    store = KeptIds(ConfluentRegistry(server.address).add)
    for topic, schema in (("a", LONG), ("a", LONG), ("a", TEXT), ("b", LONG), ("b", LONG)):
        assert store.add(topic, schema) == SchemaId.of_int32(7)
    assert len(server.asked) == 3


def glue(glue_server: str) -> Any:
    return boto3.client("glue", "eu-west-1", endpoint_url=glue_server)


@pytest.mark.usefixtures("glue_environment")
def test_glue_keeps_a_version_for_each_schema_and_finds_it_again(glue_server: str) -> None:
    glue(glue_server).create_registry(RegistryName=REGISTRY)
    registry = GlueRegistry("eu-west-1", glue_server, name=REGISTRY)
    found = {schema: registry.add(TOPIC, schema) for schema in (LONG, TEXT)}
    assert {schema: registry.schema(schema_id) for schema, schema_id in found.items()} == {
        LONG: LONG,
        TEXT: TEXT,
    }
    assert registry.add(TOPIC, LONG) == found[LONG]
    kept = glue(glue_server).get_schema(SchemaId={"RegistryName": REGISTRY, "SchemaName": TOPIC})
    assert kept["LatestSchemaVersion"] == 2


@pytest.mark.usefixtures("glue_environment")
def test_glue_without_the_registry_is_told_with_what_to_do(glue_server: str) -> None:
    with pytest.raises(RegistryRefused, match="no such schema registry"):
        GlueRegistry("eu-west-1", glue_server, name="nobody-made-it").add(TOPIC, LONG)


VERSION = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.usefixtures("glue_environment")
def test_a_schema_that_glue_still_checks_is_waited_for_and_a_failed_one_is_refused() -> None:
    client = boto3.client("glue", "eu-west-1")
    with Stubber(client) as stub:
        for last in ("AVAILABLE", "FAILURE"):
            for status in ("PENDING", last):
                answer = {"SchemaVersionId": VERSION, "Status": status}
                stub.add_response(
                    "get_schema_by_definition" if status == "PENDING" else "get_schema_version", answer
                )
        registry = GlueRegistry(client=client, name=REGISTRY)
        assert registry.add(TOPIC, LONG) == SchemaId("uuid", VERSION.replace("-", ""))
        with pytest.raises(SchemaRefused, match="FAILURE"):
            registry.add(TOPIC, LONG)


@pytest.mark.usefixtures("glue_environment")
@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("AccessDeniedException", RegistryRefused),
        ("InvalidInputException", SchemaRefused),
        ("InternalServiceException", RegistryAway),
    ],
)
def test_an_error_of_glue_for_a_new_schema(code: str, raised: type[Exception]) -> None:
    client = boto3.client("glue", "eu-west-1")
    with Stubber(client) as stub:
        stub.add_client_error("get_schema_by_definition", code)
        with pytest.raises(raised):
            GlueRegistry(client=client, name=REGISTRY).add(TOPIC, LONG)


def test_a_lake_file_names_the_registry_that_gets_the_schemas(server: Answering) -> None:
    server.body = '{"id":7,"contentId":8}'
    head = '[lake]\nname = "shop"\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\ntables = ["a.b"]\n'
    confluent = parse_lake(f'{head}[registry]\nkind = "confluent"\naddress = "{server.address}"\n')
    for lake, apicurio, number in ((confluent, None, 7), (confluent, server.address, 8)):
        store = open_store(lake, apicurio)
        assert store is not None
        assert store.add(TOPIC, LONG) == SchemaId.of_int32(number)
    assert open_store(parse_lake(head)) is None


@pytest.mark.slow
def test_apicurio_keeps_a_schema_under_both_of_its_interfaces(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with running_apicurio(tmp_path_factory.mktemp("stores")) as apicurio:
        confluent = ConfluentRegistry(f"{apicurio.address}/apis/ccompat/v7")
        for registry in (ApicurioRegistry(apicurio.address), confluent):
            found = {schema: registry.add(TOPIC, schema) for schema in (LONG, TEXT, LONG)}
            assert found[LONG] != found[TEXT]
            for schema, schema_id in found.items():
                assert json.loads(registry.schema(schema_id)) == json.loads(schema)
