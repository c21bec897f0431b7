"""What a registry answers decides whether an event waits, a table stops, or the app tries again."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

import boto3
import pytest
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from spark_app.schema_registry.framing import Framed, SchemaId, unframed
from spark_app.schema_registry.glue import GlueRegistry
from spark_app.schema_registry.http import ApicurioRegistry, ConfluentRegistry, Login
from spark_app.schema_registry.opened import open_registry
from spark_app.schema_registry.registry import OtherFraming, RegistryAway, RegistryRefused, SchemaUnknown
from tests.spark_app.answering_server import Answering, Request, answering_server
from tributary.contract.schema_registry import Registry

SCHEMA = '{"type":"record","name":"Row","fields":[]}'
INT32, INT64 = SchemaId("int32", "0000000c"), SchemaId("int64", "000000000000000c")
UUID = SchemaId("uuid", "0123456789abcdef0123456789abcdef")


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering_server() as told:
        told.body = SCHEMA
        yield told


def test_each_registry_is_asked_for_the_kind_of_id_that_its_converter_writes(server: Answering) -> None:
    apicurio = ApicurioRegistry(server.address)
    assert (apicurio.schema(INT32), apicurio.schema(INT64)) == (SCHEMA, SCHEMA)
    server.body = json.dumps({"schema": SCHEMA})
    confluent = ConfluentRegistry(f"{server.address}/api/", Login("ann", "pass:word"))
    assert confluent.schema(INT32) == SCHEMA
    assert server.asked == [
        Request("/apis/registry/v2/ids/contentIds/12", None),
        Request("/apis/registry/v2/ids/globalIds/12", None),
        Request("/api/schemas/ids/12", "Basic YW5uOnBhc3M6d29yZA=="),
    ]
    for registry, other in ((apicurio, UUID), (confluent, INT64), (confluent, UUID), (GlueRegistry(), INT32)):
        with pytest.raises(OtherFraming):
            registry.schema(other)


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        (404, '{"error_code":40403,"message":"Schema 12 not found"}', SchemaUnknown),
        (200, '{"schema":"syntax = \\"proto3\\";","schemaType":"PROTOBUF"}', SchemaUnknown),
        (404, '{"error_code":404,"message":"HTTP 404 Not Found"}', RegistryRefused),
        (404, "<html>nothing here</html>", RegistryRefused),
        (200, "<html>welcome</html>", RegistryRefused),
        (400, '{"error_code":400}', RegistryRefused),
        (401, '{"error_code":40101}', RegistryRefused),
        (403, '{"error_code":40301}', RegistryRefused),
        (429, "", RegistryAway),
        (500, '{"error_code":50001}', RegistryAway),
        (503, "", RegistryAway),
    ],
)
def test_an_answer_of_confluents_registry(
    server: Answering, status: int, body: str, raised: type[Exception]
) -> None:
    server.status, server.body = status, body
    with pytest.raises(raised):
        ConfluentRegistry(server.address).schema(INT32)


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        (404, '{"error_code":404,"name":"ContentNotFoundException"}', SchemaUnknown),
        (404, '{"error_code":404,"name":"ArtifactNotFoundException"}', SchemaUnknown),
        (404, "", RegistryRefused),
        (401, "", RegistryRefused),
        (500, '{"error_code":500,"name":"RegistryStorageException"}', RegistryAway),
    ],
)
def test_an_answer_of_apicurio(server: Answering, status: int, body: str, raised: type[Exception]) -> None:
    server.status, server.body = status, body
    with pytest.raises(raised):
        ApicurioRegistry(server.address).schema(INT64)


def test_a_refused_login_is_told_with_what_to_do_and_without_the_password(server: Answering) -> None:
    server.status = 401
    with pytest.raises(RegistryRefused) as refused:
        ConfluentRegistry(server.address, Login("ann", "secret-word")).schema(INT32)
    assert "refuses the login" in str(refused.value)
    assert "[registry]" in str(refused.value)
    assert "secret-word" not in f"{refused.value} {Login('ann', 'secret-word')!r}"


def test_a_registry_that_does_not_listen_is_away() -> None:
    for registry in (ApicurioRegistry("http://127.0.0.1:9"), ConfluentRegistry("http://127.0.0.1:9")):
        with pytest.raises(RegistryAway, match=r"127\.0\.0\.1:9"):
            registry.schema(INT32)


@pytest.mark.usefixtures("glue_environment")
@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("EntityNotFoundException", SchemaUnknown),
        ("AccessDeniedException", RegistryRefused),
        ("UnrecognizedClientException", RegistryRefused),
        ("ExpiredTokenException", RegistryAway),
        ("InternalServiceException", RegistryAway),
    ],
)
def test_an_error_of_glue(code: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    client = boto3.client("glue", "eu-west-1")
    with Stubber(client) as stub:
        stub.add_client_error("get_schema_version", code)
        monkeypatch.setattr("spark_app.schema_registry.glue.boto3.client", lambda *_, **__: client)
        with pytest.raises(raised):
            GlueRegistry("eu-west-1").schema(UUID)


def test_a_registry_without_its_password_in_the_environment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGISTRY_PASSWORD", raising=False)
    entry = Registry(
        kind="confluent", address="http://registry:8081", user="ann", password_env="REGISTRY_PASSWORD"
    )
    with pytest.raises(RegistryRefused, match="REGISTRY_PASSWORD"):
        open_registry(entry)


@given(
    st.sampled_from([("int32", 4), ("int64", 4), ("uuid", 16)]).flatmap(
        lambda kind: st.tuples(st.just(kind[0]), st.binary(min_size=kind[1], max_size=kind[1]))
    ),
    st.binary(min_size=1, max_size=40),
)
def test_every_id_is_found_in_what_begins_with_it(kind: tuple[str, bytes], record: bytes) -> None:
    framing, number = kind
    if framing != "uuid" and not any(number):
        number = b"\0\0\0\1"
    digits = (bytes(4) + number if framing == "int64" else number).hex()
    schema = SchemaId(framing, digits)  # type: ignore[arg-type]
    assert SchemaId.parse(str(schema)) == schema
    plain, *compressed = schema.starts
    assert unframed(plain + record) == Framed(schema, record)
    for start in compressed:
        assert unframed(start + zlib.compress(record)) == Framed(schema, record)
        assert unframed(start + b"\xff" + record) == Framed(schema, None)


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\0\0\1", b"\0" * 9, b"\3\0" + bytes(16), b"{}", b"\3\1"])
def test_other_bytes_are_not_framed(value: bytes) -> None:
    assert unframed(value) is None
