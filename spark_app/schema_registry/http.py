"""Ask Apicurio's registry and Confluent's, which answer over HTTP."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from spark_app.schema_registry.framing import SchemaId
from spark_app.schema_registry.registry import (
    OtherFraming,
    RegistryAway,
    RegistryRefused,
    SchemaUnknown,
    another_kind,
    schema_refused,
)
from tributary.contract.remedies import EditLakeFile

TIMEOUT_SECONDS = 10.0
_MOST_BYTES = 16 << 20
_NOT_FOUND = 404
_NOT_TAKEN = frozenset({409, 422})
_PASSING = frozenset({408, 425, 429})
_LOGIN = frozenset({401, 403, 407})


@dataclass(frozen=True)
class Login:
    """The user and password that a registry asks for."""

    user: str
    password: str

    @property
    def header(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        return f"Login(user={self.user!r})"


@dataclass(frozen=True)
class ApicurioRegistry:
    """Apicurio's registry. `address` is the server's, such as `http://registry:8080`.

    It uses version 2 of the interface, which servers 2.x and 3.x have. An int64 is the global id of a version
    of an artifact (Apicurio's default). An int32 is the id of a content, as for Confluent's clients."""

    address: str
    login: Login | None = None

    def schema(self, schema_id: SchemaId) -> str:
        match schema_id.framing:
            case "int32":
                path = f"contentIds/{schema_id.number}"
            case "int64":
                path = f"globalIds/{schema_id.number}"
            case _:
                raise OtherFraming(str(schema_id))
        answer = _ask(self.address, f"/apis/registry/v2/ids/{path}", self.login)
        if answer.status == _NOT_FOUND and str(answer.fields.get("name")).endswith("NotFoundException"):
            raise SchemaUnknown(str(schema_id))
        return answer.checked().text

    def add(self, topic: str, schema: str) -> SchemaId:
        """Keep the schema as an artifact with the name that Apicurio's converter gives it.

        The id is that of the content, as our connectors' converter writes it."""
        headers = {
            "Content-Type": "application/json",
            "X-Registry-ArtifactId": _subject(topic),
            "X-Registry-ArtifactType": "AVRO",
        }
        path = "/apis/registry/v2/groups/default/artifacts?ifExists=RETURN_OR_UPDATE"
        return _added(_ask(self.address, path, self.login, _Sent(schema, headers)), topic, "contentId")


@dataclass(frozen=True)
class ConfluentRegistry:
    """Confluent's registry, or another one with its interface. `address` ends where `/schemas` begins."""

    address: str
    login: Login | None = None

    def schema(self, schema_id: SchemaId) -> str:
        if schema_id.framing != "int32":
            raise OtherFraming(str(schema_id))
        answer = _ask(self.address, f"/schemas/ids/{schema_id.number}", self.login)
        if answer.status == _NOT_FOUND and answer.fields.get("error_code") in _NO_SUCH_SCHEMA:
            raise SchemaUnknown(str(schema_id))
        found = answer.checked().fields
        if found.get("schemaType", "AVRO") != "AVRO":
            raise SchemaUnknown(f"{schema_id} is a schema of {found['schemaType']}")
        if not isinstance(found.get("schema"), str):
            raise _refused(answer, "no schema in the answer")
        return str(found["schema"])

    def add(self, topic: str, schema: str) -> SchemaId:
        """Keep the schema under the name that Confluent's clients look for."""
        subject = urllib.parse.quote(_subject(topic), safe="")
        sent = _Sent(
            json.dumps({"schema": schema}), {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        )
        answer = _ask(self.address, f"/subjects/{subject}/versions", self.login, sent)
        return _added(answer, topic, "id")


_NO_SUCH_SCHEMA = (40401, 40402, 40403)
"""The error codes of an id that Confluent's registry, or one with its interface, does not have."""


@dataclass(frozen=True)
class _Sent:
    """What a request sends to the registry."""

    body: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class _Answer:
    url: str
    status: int
    text: str

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of the answer's JSON object; none if it is no JSON object."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def checked(self) -> _Answer:
        """Return the answer if it is a good one. Raises `RegistryAway` or `RegistryRefused`."""
        if self.status == 200:
            return self
        if self.status >= 500 or self.status in _PASSING:
            raise RegistryAway(f"The schema registry answers {self.status} to {self.url}")
        raise _refused(self, f"the answer {self.status}")


def _subject(topic: str) -> str:
    """Return the name of the schema of the topic's values."""
    return f"{topic}-value"


def _added(answer: _Answer, topic: str, field: str) -> SchemaId:
    """Return the id in the answer to a new schema. `field` is the one with the id."""
    if answer.status in _NOT_TAKEN:
        raise schema_refused(topic, str(answer.fields.get("message") or answer.text)[:500])
    number = answer.checked().fields.get(field)
    if not isinstance(number, int):
        raise _refused(answer, "no id of a schema in the answer")
    return SchemaId.of_int32(number)


def _refused(answer: _Answer, found: str) -> RegistryRefused:
    if answer.status in _LOGIN:
        return RegistryRefused(
            "The schema registry refuses the login",
            where=answer.url,
            found=found,
            expected="a user that may read schemas, and add those of derived tables",
            remedy=EditLakeFile("name the user, and the password's variable, in [registry]"),
        )
    return another_kind(answer.url, found, "a schema or its id, or the registry's own error about it")


def _ask(address: str, path: str, login: Login | None, sent: _Sent | None = None) -> _Answer:
    """Ask for what is at the path or, if something is sent, send it there."""
    url = address.rstrip("/") + path
    headers = {
        "Accept": "application/json, */*",
        **({} if login is None else {"Authorization": login.header}),
        **({} if sent is None else sent.headers),
    }
    request = urllib.request.Request(url, None if sent is None else sent.body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return _Answer(url, response.status, _text(response))
    except urllib.error.HTTPError as error:
        with error:
            return _Answer(url, error.code, _text(error))
    except (OSError, HTTPException) as error:
        raise RegistryAway(f"The schema registry does not answer at {url}: {error}") from error


def _text(response: Any) -> str:
    return str(response.read(_MOST_BYTES).decode("utf-8", "replace"))
