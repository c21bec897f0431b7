"""The tables that a source takes: `schema.table` patterns with `*` and `?`, and `!` to exclude."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from tributary.contract.errors import TributaryError

WILDCARDS = "*?"

OWN_SCHEMA = "tributary"
"""The schema in a source database that holds Tributary's heartbeat table. No pattern matches its tables."""

# Names that cannot be recovered from the topic's name that Debezium builds (naming.topic_escape):
# - a dot separates schema from table;
# - an escape of three digits (U+0000 to U+000F, U+0100 to U+0FFF) before a hexadecimal digit reads as the
#   escape of another character;
# - a blank name is left out.
# Debezium also does not quote, in the snapshot's SQL, names that look quoted already (TableId.quote).
_UNTRACEABLE = re.compile(r"\.|[\x00-\x0f\u0100-\u0fff][0-9a-f]|^[\x00-\x20]*\Z" + r'|^"|"\Z')
_UNTRACEABLE_IN_DEBEZIUM = (
    r"(?!.*[\x00-\x0f\u0100-\u0fff][0-9a-f])(?![\x00-\x20]*\.)(?!.*\.[\x00-\x20]*(?!.))"
    r'(?!")(?!.*"\.)(?!.*\.")(?!.*"(?!.))'
)


class NotATablePattern(TributaryError):
    """A text that is not a table pattern."""


@dataclass(frozen=True)
class TablePattern:
    """One pattern: a schema part and a table part, each with `*` (any characters) and `?` (one character)."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TablePattern:
        """Parse a pattern without a leading `!`. Raises NotATablePattern."""
        schema, dot, table = text.partition(".")
        if not (schema and dot and table) or "." in table or text != text.strip():
            raise NotATablePattern(
                "not a pattern for tables",
                found=repr(text),
                expected='schema.table with * and ? as wildcards, such as "public.*" or "sales.order_?"',
            )
        return cls(schema, table)

    @property
    def is_whole_schema(self) -> bool:
        """Tell whether the pattern matches every table of one named schema."""
        return self.table.strip("*") == "" and not any(wildcard in self.schema for wildcard in WILDCARDS)

    def may_match_in(self, schema: str) -> bool:
        """Tell whether the pattern can match any table of this schema."""
        return _is_match(self.schema, schema)

    def matches(self, schema: str, table: str) -> bool:
        return bool(_is_match(self.schema, schema) and _is_match(self.table, table))

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class TablePatterns:
    """Include and exclude patterns: a table needs one include match and no exclude match, in any order."""

    include: tuple[TablePattern, ...]
    exclude: tuple[TablePattern, ...]

    @classmethod
    def parse(cls, texts: tuple[str, ...]) -> TablePatterns:
        """Parse the patterns. Raises NotATablePattern, also if no pattern includes a table."""
        include = tuple(TablePattern.parse(text) for text in texts if not text.startswith("!"))
        exclude = tuple(TablePattern.parse(text[1:]) for text in texts if text.startswith("!"))
        if not include:
            raise NotATablePattern(
                "no table is included",
                found=", ".join(texts) or "an empty list",
                expected='at least one pattern without "!", such as "public.*"',
            )
        return cls(include, exclude)

    def matches(self, schema: str, table: str) -> bool:
        """Tell whether the table is taken. Case matters. Untraceable tables and Tributary's never match."""
        return (
            self.would_match(schema, table)
            and schema != OWN_SCHEMA
            and is_traceable(schema)
            and is_traceable(table)
        )

    def would_match(self, schema: str, table: str) -> bool:
        """Tell whether the patterns alone match, even if the table's name is not traceable."""
        return any(pattern.matches(schema, table) for pattern in self.include) and not any(
            pattern.matches(schema, table) for pattern in self.exclude
        )

    @property
    def debezium_regex(self) -> str:
        """The expression of `debezium_regex_without` that leaves out no table."""
        return self.debezium_regex_without(())

    def debezium_regex_without(self, tables: Iterable[tuple[str, str]]) -> str:
        """Return a Java regular expression for `table.include.list` that agrees with `matches`.

        It matches none of these tables, given as schema and table.

        Debezium splits the list at commas, trims the parts and ignores case (debezium-util's
        Strings.setOfRegex and Predicates.includes). So the expression has no comma, and its flag restores the
        case.
        """
        include = "|".join(_debezium_regex_of(pattern) for pattern in self.include)
        exclude = "".join(f"(?!{_debezium_regex_of(pattern)}(?!.))" for pattern in self.exclude)
        own = rf"(?!{OWN_SCHEMA}\.)"
        names = "|".join(rf"{_literally(schema)}\.{_literally(table)}" for schema, table in sorted(tables))
        left_out = f"(?!(?:{names})(?!.))" if names else ""
        return f"(?s-i:{_UNTRACEABLE_IN_DEBEZIUM}{own}{exclude}{left_out}(?:{include}))"

    @property
    def debezium_schema_regex(self) -> str:
        """A Java regular expression, in the same form, for ours and all schemas that the patterns include."""
        parts = sorted({_regex_of(pattern.schema, any_character=".") for pattern in self.include})
        return f"(?s-i:{'|'.join([*parts, OWN_SCHEMA])})"


def is_traceable(name: str) -> bool:
    """Tell whether Debezium can read a table or schema with this name, and its topic's name gives it back."""
    return _UNTRACEABLE.search(name) is None


def _is_match(wildcard: str, name: str) -> bool:
    return _matcher(wildcard).fullmatch(name) is not None


@lru_cache
def _matcher(wildcard: str) -> re.Pattern[str]:
    return re.compile(_regex_of(wildcard, any_character="."), re.DOTALL)


def _debezium_regex_of(pattern: TablePattern) -> str:
    parts = (_regex_of(part, any_character="[^.]") for part in (pattern.schema, pattern.table))
    return r"\.".join(parts)


def _literally(name: str) -> str:
    return "".join(map(_regex_of_literal, name))


def _regex_of(wildcard: str, any_character: str) -> str:
    """Return the wildcard in the syntax that Python and Java share, without comma or blank."""
    return "".join(_regex_of_character(character, any_character) for character in wildcard)


def _regex_of_character(character: str, any_character: str) -> str:
    if character == "*":
        return f"{any_character}*"
    if character == "?":
        return any_character
    return _regex_of_literal(character)


def _regex_of_literal(character: str) -> str:
    if character.isascii() and not character.isalnum():
        return f"\\x{ord(character):02x}"
    return character
