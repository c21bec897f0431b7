"""No statement for MySQL and MariaDB uses a word as a name that a version of them reserves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot.dialects.mysql import MySQL
from sqlglot.tokenizer_core import Token, TokenType

import connectors.engines
from tributary.local import mariadb

ENGINES = Path(connectors.engines.__path__[0])
MODULES = (
    *(
        module
        for folder in ("binlog", "mysql", "mariadb")
        for module in sorted((ENGINES / folder).glob("*.py"))
    ),
    Path(mariadb.__file__),
)
VERBS = ("SELECT ", "INSERT ", "DELETE ", "CREATE ", "DROP ", "GRANT ", "SHOW ", "START ")
RESERVED = frozenset((Path(__file__).with_name("reserved_words.txt")).read_text().split())
"""What MySQL 8.0, 8.4 or 9.7, or MariaDB 11.4, does not take as a name or an alias without quotes.

These are the words of information_schema.KEYWORDS of MySQL 9.7 and MariaDB 11.4 that those servers refused,
and two that only MySQL 8.0 reserves.
"""
LITERALS = {"NULL", "TRUE", "FALSE"}


def statements(module: Path) -> Iterator[str]:
    """Yield the SQL texts in a module. `x` stands for each value that Python puts into a text."""
    tree = ast.parse(module.read_text())
    in_formats = {id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in in_formats:
            text = node.value
        else:
            continue
        if text.lstrip().startswith(VERBS):
            yield text


def reserved_names(statement: str) -> list[str]:
    """Return the names in lower case, as Tributary writes all its own, that are reserved.

    A word before a parenthesis is a function or a type.
    """
    tokens = MySQL().tokenize(statement.replace("%s", "1"))
    return [
        token.text
        for token, following in zip(tokens, [*tokens[1:], None], strict=True)
        if token.text.islower()
        and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
        and token.text.upper() in RESERVED - LITERALS
        and not _is_parenthesis(following)
    ]


def _is_parenthesis(token: Token | None) -> bool:
    return token is not None and token.token_type is TokenType.L_PAREN


STATEMENTS = [(module.stem, text) for module in MODULES for text in statements(module)]


@pytest.mark.parametrize("text", [text for _, text in STATEMENTS], ids=[module for module, _ in STATEMENTS])
def test_no_statement_uses_a_reserved_word_as_a_name(text: str) -> None:
    assert reserved_names(text) == []


def test_a_reserved_word_is_found() -> None:
    assert {"definitions", "preflight", "reading", "preparation", "signals"} <= {
        name for name, _ in STATEMENTS
    }
    assert reserved_names("SELECT A AS generated, left(a) AS `left`, 'read' FROM t AS lateral") == [
        "generated",
        "lateral",
    ]
