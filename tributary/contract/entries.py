"""The building blocks of a lake file: frozen entries, and the forms of their values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError


class Entry(BaseModel):
    """A part of a lake file. It is frozen and rejects unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Problem(NamedTuple):
    """A mistake that only several entries together show."""

    entry: str
    what: str
    found: str
    expected: str


def expecting(expected: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "{expected}", {"expected": expected})


def matching(regex: str, expected: str) -> AfterValidator:
    def check(value: str) -> str:
        if re.fullmatch(regex, value) is None:
            raise expecting(expected)
        return value

    return AfterValidator(check)


def named_as(problem: Callable[[str], str | None]) -> AfterValidator:
    """Accept a name for which `problem` returns None. Otherwise its text says what was expected."""

    def check(name: str) -> str:
        if (expected := problem(name)) is not None:
            raise expecting(expected)
        return name

    return AfterValidator(check)


def as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def without_repetition(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values or "" in values or len(set(values)) < len(values):
        raise expecting("a list of different names, at least one")
    return values


def _duration(value: object) -> timedelta:
    units = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
    if isinstance(value, timedelta):
        return value
    match = re.fullmatch(r"([1-9][0-9]{0,6})([mhd])", value) if isinstance(value, str) else None
    if match is None or (duration := int(match[1]) * units[match[2]]) > timedelta(days=3650):
        raise expecting('minutes, hours or days, at most 3650 days, written "30m", "24h" or "7d"')
    return duration


Duration = Annotated[timedelta, PlainValidator(_duration)]
Names = Annotated[tuple[str, ...], BeforeValidator(as_tuple), AfterValidator(without_repetition)]
Port = Annotated[int, Field(ge=1, le=65535)]
# libpq and the JDBC driver read the host from a URL, so it may not hold a character that ends or splits a
# URL.
Host = Annotated[str, matching(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", "a host name or an IPv4 address")]


EnvironmentVariable = Annotated[
    str, matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable that holds the secret")
]
"""The name of such an entry ends with `_env`, so that `secret_variables_in` finds it."""
SecretArn = Annotated[
    str,
    matching(
        r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}",
        "the whole ARN of a secret of Secrets Manager, with the six characters at its end, such as -AbCdEf",
    ),
]
KeyArn = Annotated[
    str,
    matching(
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-z0-9-]+",
        "the ARN of a KMS key, with key/ and not alias/",
    ),
]


def secret_variables_in(value: object) -> Iterator[str]:
    """Yield the environment variables that hold secrets, as a section of the file and its parts name them."""
    if isinstance(value, tuple):
        for part in value:
            yield from secret_variables_in(part)
    if isinstance(value, Entry):
        for name, part in value:
            if name.endswith("_env") and isinstance(part, str):
                yield part
            yield from secret_variables_in(part)


def toml_key(key: str) -> str:
    """Return the key as TOML has it, in quotes if it needs them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
