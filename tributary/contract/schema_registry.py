"""The schema registry in the lake file: `[registry]`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from tributary.contract.entries import Entry, EnvironmentVariable, Problem, matching

RegistryKind = Literal["apicurio", "confluent", "glue"]

Address = Annotated[
    str,
    matching(
        r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,4}|:[1-5][0-9]{4})?(/[A-Za-z0-9._~/-]*)?",
        'an address such as "http://registry.example.org:8080", without a user or a password',
    ),
]
GlueRegistryName = Annotated[
    str, matching(r"[A-Za-z0-9_$#.-]{1,255}", "the name of a registry: letters, digits and _ $ # . -")
]
Region = Annotated[str, matching(r"[a-z]{2}(-[a-z]+)+-[0-9]", 'an AWS region such as "eu-central-1"')]

_OF_HTTP = ("address", "user", "password_env")
_OF_GLUE = ("name", "region")


class Registry(Entry):
    """`[registry]`: where the schemas of Avro events are.

    address       of Apicurio's server, or of Confluent's registry; None: `tributary up` starts Apicurio
    user          who logs in to it; None: nobody has to
    password_env  the environment variable with that user's password
    name          of Glue's registry; None: a registry that the stacks create, with the lake's name
    region        of Glue's registry; None: the region of the lake
    """

    kind: RegistryKind
    address: Address | None = None
    user: str | None = None
    password_env: EnvironmentVariable | None = None
    name: GlueRegistryName | None = None
    region: Region | None = None

    @property
    def port(self) -> int | None:
        """The port of the address; None if there is no address."""
        if self.address is None:
            return None
        parts = urlsplit(self.address)
        return parts.port or (443 if parts.scheme == "https" else 80)

    def problems(self) -> Iterator[Problem]:
        """Yield what no single key shows."""
        of_others = _OF_HTTP if self.kind == "glue" else _OF_GLUE
        for key in of_others:
            if getattr(self, key) is not None:
                expected = f"{', '.join(_OF_GLUE if self.kind == 'glue' else _OF_HTTP)}, or nothing"
                yield Problem(
                    f"[registry].{key}",
                    f"an entry that kind = {json.dumps(self.kind)} does not have",
                    json.dumps(getattr(self, key)),
                    expected,
                )
        if (self.user is None) != (self.password_env is None):
            yield Problem("[registry]", "half of a login", "one of user and password_env", "both, or none")
        if self.user is not None and self.address is None:
            yield Problem("[registry].user", "a login without an address", json.dumps(self.user), "address")

    def problems_on_aws(self) -> Iterator[Problem]:
        """Yield what prevents a deployed lake from using the registry."""
        if self.kind != "glue" and self.address is None:
            expected = 'the address of your own, or kind = "glue", which the deployment creates'
            yield Problem("[registry].address", "a registry that nobody starts on AWS", "none", expected)
        if self.user is not None:
            expected = "a registry without a login, which its network protects, or one of Glue"
            yield Problem(
                "[registry].user",
                "a login, which a deployed lake cannot use yet",
                json.dumps(self.user),
                expected,
            )
