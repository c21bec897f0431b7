"""The forms in which other connectors and sinks write the contents of Debezium's JSON envelope with schemas.

This module shares no code with the app. Connect's own converter and transform make the JSON. The behavior of
Confluent's AvroData is written here a second time."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def bare(value: bytes) -> bytes:
    """Return the payload that follows the schema."""
    return value[value.index(b',"payload":') + len(b',"payload":') : -1]


def converted(
    jvm: Any, topic: str, values: Iterable[bytes], unwrap: Mapping[str, str] | None, **options: str
) -> Iterator[bytes]:
    """Return the values as Connect's JsonConverter with these options writes them.

    `unwrap` are the options of ExtractNewRecordState."""
    reader, writer = json_converter(jvm, {}), json_converter(jvm, options)
    transform = None
    if unwrap is not None:
        transform = jvm.io.debezium.transforms.ExtractNewRecordState()
        transform.configure(unwrap)
    for value in values:
        found = reader.toConnectData(topic, value)
        record = jvm.org.apache.kafka.connect.source.SourceRecord(
            {}, {}, topic, None, None, found.schema(), found.value()
        )
        if transform is not None:
            record = transform.apply(record)
        yield bytes(writer.fromConnectData(topic, record.valueSchema(), record.value()))


def json_converter(jvm: Any, options: Mapping[str, str], *, is_key: bool = False) -> Any:
    converter = jvm.org.apache.kafka.connect.json.JsonConverter()
    defaults = {"schemas.enable": "true", "decimal.format": "NUMERIC", "replace.null.with.default": "false"}
    converter.configure({**defaults, **options}, is_key)
    return converter


def write_lines(path: Path, values: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(value + b"\n" for value in values)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_avro(jvm: Any, path: Path, values: Sequence[bytes]) -> None:
    """Write values of one schema like a sink that uses Confluent's AvroData."""
    path.parent.mkdir(parents=True, exist_ok=True)
    avro = jvm.org.apache.avro
    connect = json.loads(values[0])["schema"]
    schema = avro.Schema.Parser().parse(json.dumps(avro_schema(connect, set())))
    writer = avro.file.DataFileWriter(avro.generic.GenericDatumWriter())
    writer.create(schema, jvm.java.io.File(str(path)))
    for value in values:
        payload = json.loads(value, parse_float=Decimal)["payload"]
        decoder = avro.io.DecoderFactory.get().jsonDecoder(schema, json.dumps(_avro_json(payload, connect)))
        writer.append(avro.generic.GenericDatumReader(schema).read(None, decoder))
    writer.close()


_AVRO_TYPES = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}


def avro_schema(connect: Mapping[str, Any], named: set[str]) -> Any:
    """Return the Avro schema of AvroData#fromConnectSchema; `named`: records that it has met."""
    avro: Any = {"type": _AVRO_TYPES.get(connect["type"], connect["type"])}
    match connect["type"]:
        case "struct":
            avro = _avro_record(connect, named)
        case "array":
            avro["items"] = avro_schema(connect["items"], named)
        case "int8" | "int16" as kind:
            avro["connect.type"] = kind
    if isinstance(avro, dict):
        if "name" in connect:
            avro["connect.name"] = connect["name"]
        if "version" in connect:
            avro["connect.version"] = connect["version"]
        if "parameters" in connect:
            avro["connect.parameters"] = connect["parameters"]
        if connect.get("name") == _DECIMAL:
            precision = int(connect["parameters"].get("connect.decimal.precision", 64))
            scale = int(connect["parameters"]["scale"])
            avro |= {"logicalType": "decimal", "precision": precision, "scale": scale}
        if avro.keys() == {"type"}:
            avro = avro["type"]
    return ["null", avro] if connect.get("optional") else avro


def _avro_record(connect: Mapping[str, Any], named: set[str]) -> Any:
    name = connect.get("name", "ConnectDefault")
    if name in named:
        return name
    named.add(name)
    namespace, _, simple = name.rpartition(".")
    fields = [{"name": f["field"], "type": avro_schema(f, named)} for f in connect["fields"]]
    return {"type": "record", "name": simple, "namespace": namespace, "fields": fields}


def _avro_json(value: Any, connect: Mapping[str, Any]) -> Any:
    """Return a value in the JSON encoding of the Avro specification."""
    if value is None:
        return None
    kind = _AVRO_TYPES.get(connect["type"], connect["type"])
    match connect["type"]:
        case "struct":
            kind = connect.get("name", "ConnectDefault")
            value = {f["field"]: _avro_json(value.get(f["field"]), f) for f in connect["fields"]}
        case "array":
            value = [_avro_json(item, connect["items"]) for item in value]
        case "bytes" if connect.get("name") == _DECIMAL:
            unscaled = int(Context(prec=100).scaleb(Decimal(value), int(connect["parameters"]["scale"])))
            value = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True).decode("latin-1")
        case "bytes":
            value = base64.b64decode(value).decode("latin-1")
        case "float" | "double":
            value = float(value)
    return {kind: value} if connect.get("optional") else value
