"""Which character sets Debezium reads wrong from the log, because Java's counterpart has other characters.

Each character of each set of MySQL 9.7 and MariaDB 11.4 was written by the server, and read with the Java
charset that Debezium takes for it (MySqlCharsetRegistry, MariaDbCharsetRegistry). A snapshot reads all of
them right, because the server then sends UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping

UNREADABLE = frozenset({"armscii8", "dec8", "euckr", "geostd8", "hp8", "keybcs2", "koi8u", "swe7"})
"""Sets in which letters come out as others."""

UNREADABLE_IN_MARIADB = UNREADABLE | {"cp932"}
"""Debezium takes MariaDB's cp932 for GB2312."""

LABELS_UNREADABLE = frozenset({"utf16", "utf16le", "utf32"})
"""Sets in which a label of an enum or a set loses its characters beyond U+FFFF."""

WITH_OTHER_CHARACTERS: Mapping[str, str] = {
    "big5": "8 characters, among them 恒, 粧 and 裏",
    "cp866": "² and ⁿ",
    "cp932": "晡",
    "eucjpms": "― and ∥, and characters of your own",
    "gb18030": "36 rare characters",
    "gbk": "⊕",
    "greek": "ʽ and ʼ",
    "hebrew": "‾",
    "sjis": "＼ and ―",
    "ucs2": "a byte order mark at the beginning",
    "ujis": "―, and characters of your own",
    "utf16": "a byte order mark at the beginning",
    "utf32": "a byte order mark at the beginning",
}
"""Sets with a few characters that come out as others, or not at all."""
