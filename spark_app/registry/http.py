"""Ask Apicurio's registry and Confluent's, which answer over HTTP."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from spark_app.registry.framing import SchemaId
from spark_app.registry.registry import OtherFraming, RegistryAway, RegistryRefused, SchemaUnknown
from tributary.contract.remedies import EditLakeFile

TIMEOUT_SECONDS = 10.0
_MOST_BYTES = 16 << 20
_NOT_FOUND = 404
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


@dataclass(frozen=True)
class ConfluentRegistry:
    """Confluent's registry, or another one with its interface. `address` ends where `/schemas` begins."""

    address: str
    login: Login | None = None

    def schema(self, schema_id: SchemaId) -> str:
        if schema_id.framing != "int32":
            raise OtherFraming(str(schema_id))
        answer = _ask(self.address, f"/schemas/ids/{schema_id.number}", self.login)
        if answer.status == _NOT_FOUND and answer.fields.get("error_code") == _SCHEMA_NOT_FOUND:
            raise SchemaUnknown(str(schema_id))
        found = answer.checked().fields
        if found.get("schemaType", "AVRO") != "AVRO":
            raise SchemaUnknown(f"{schema_id} is a schema of {found['schemaType']}")
        if not isinstance(found.get("schema"), str):
            raise _refused(answer, "no schema in the answer")
        return str(found["schema"])


_SCHEMA_NOT_FOUND = 40403
"""The error code of an id that Confluent's registry does not have."""


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


def _refused(answer: _Answer, found: str) -> RegistryRefused:
    if answer.status in _LOGIN:
        return RegistryRefused(
            "The schema registry refuses the login",
            where=answer.url,
            found=found,
            expected="a user that may read schemas",
            remedy=EditLakeFile("name the user, and the password's variable, in [registry]"),
        )
    return RegistryRefused(
        "What answers at the schema registry's address is not this kind of registry",
        where=answer.url,
        found=found,
        expected="the schema with this id, or the registry's own error about it",
        remedy=EditLakeFile("check address and kind in [registry]"),
    )


def _ask(address: str, path: str, login: Login | None) -> _Answer:
    url = address.rstrip("/") + path
    headers = {
        "Accept": "application/json, */*",
        **({} if login is None else {"Authorization": login.header}),
    }
    request = urllib.request.Request(url, headers=headers)
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
