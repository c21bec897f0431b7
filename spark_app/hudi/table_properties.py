"""The file `hoodie.properties` of a table: its text, and the checksum in it.

Source of the format: org.apache.hudi.common.table.HoodieTableConfig, table version 6."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping

_CHECKSUM = "hoodie.table.checksum"
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NEEDS_ESCAPE = re.compile(r"[\\:=#! \t\n\r\f]|[^\x20-\x7e]")


def properties_text(name: str, properties: Mapping[str, str]) -> str:
    """Return the text of the properties of the table with this name, and their checksum."""
    checksum = str(zlib.crc32(f".{name}".encode()))
    lines = [f"{_escape(key)}={_escape(value)}" for key, value in {**properties, _CHECKSUM: checksum}.items()]
    return "\n".join([*sorted(lines), ""])


def parse_properties(text: str) -> Mapping[str, str]:
    """Return the properties in a text that Java's `Properties` or `properties_text` wrote."""
    lines = (line for line in text.splitlines() if line and not line.startswith(("#", "!")))
    found = (re.split(r"(?<!\\)[=:]", line, maxsplit=1) for line in lines)
    return {_unescape(key): _unescape(rest[0] if rest else "") for key, *rest in found}


def _escape(text: str) -> str:
    def escaped(found: re.Match[str]) -> str:
        character = found[0]
        if character.isascii() and character.isprintable():
            return f"\\{character}"
        units = character.encode("utf-16-be")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    return _NEEDS_ESCAPE.sub(escaped, text)


def _unescape(text: str) -> str:
    def unescaped(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROLS.get(code, code)

    return _ESCAPED.sub(unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16")
