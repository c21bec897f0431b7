"""Framing: the bytes before an Avro record that name its schema in a registry.

Sources: AWSSchemaRegistryConstants (AWS Glue), AbstractKafkaSchemaSerDe (Confluent), DefaultIdHandler and
Legacy4ByteIdHandler (Apicurio). This module does not need PySpark, so the commands that read bronze do not
either."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal, cast

Framing = Literal["int32", "int64", "uuid"]
"""Confluent and Apicurio write an int32, Apicurio by default an int64, and AWS Glue a UUID."""

ZERO, GLUE_VERSION = b"\x00", b"\x03"
PLAIN, ZLIB = b"\x00", b"\x05"
"""AWS Glue's second byte: how the record is compressed."""

INT32_BYTES, INT64_BYTES, UUID_BYTES = 4, 8, 16
INT32_START, INT64_START, UUID_START = 1 + INT32_BYTES, 1 + INT64_BYTES, 2 + UUID_BYTES
"""How many bytes precede the record."""

NO_INT32 = bytes(INT32_BYTES)
"""No registry gives this id. So four zero bytes after the first byte begin an int64: that of a registry with
fewer than 2^32 schemas."""


@dataclass(frozen=True)
class SchemaId:
    """The id of a schema in a registry. `digits` are all of its hexadecimal digits, in lower case."""

    framing: Framing
    digits: str

    @staticmethod
    def parse(text: str) -> SchemaId:
        """Return the id that `str` wrote."""
        framing, _, digits = text.partition(":")
        return SchemaId(cast(Framing, framing), digits)

    def __str__(self) -> str:
        return f"{self.framing}:{self.digits}"

    @staticmethod
    def of_int32(number: int) -> SchemaId:
        return SchemaId("int32", f"{number:0{2 * INT32_BYTES}x}")

    @property
    def number(self) -> int:
        return int(self.digits, 16)

    @property
    def starts(self) -> tuple[bytes, ...]:
        """The bytes with which a record of this schema can begin. Only AWS Glue has two: one for zlib."""
        written = bytes.fromhex(self.digits)
        if self.framing == "uuid":
            return (GLUE_VERSION + PLAIN + written, GLUE_VERSION + ZLIB + written)
        return (ZERO + written,)


@dataclass(frozen=True)
class Framed:
    """A framed record: the id of its schema, and its Avro bytes. `avro` is None if zlib cannot read them."""

    schema: SchemaId
    avro: bytes | None


def unframed(value: bytes) -> Framed | None:
    """Return the record in a value; None if no registry's converter frames values so."""
    first, second = value[:1], value[1:2]
    if first == GLUE_VERSION and second in (PLAIN, ZLIB) and len(value) > UUID_START:
        found = SchemaId("uuid", value[2:UUID_START].hex())
        body = value[UUID_START:]
        return Framed(found, _inflated(body) if second == ZLIB else body)
    if first != ZERO or len(value) <= INT32_START:
        return None
    if value[1:INT32_START] != NO_INT32:
        return Framed(SchemaId("int32", value[1:INT32_START].hex()), value[INT32_START:])
    if len(value) <= INT64_START:
        return None
    return Framed(SchemaId("int64", value[1:INT64_START].hex()), value[INT64_START:])


def _inflated(body: bytes) -> bytes | None:
    try:
        return zlib.decompress(body)
    except zlib.error:
        return None
