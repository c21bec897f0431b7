"""Debezium, given the patterns' regular expression, takes the same tables as the patterns."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.contract.lake_files import IDENTIFIERS
from tributary.contract.patterns import NotATablePattern, TablePattern, TablePatterns

PARTS = st.text(st.sampled_from("ab_AB*?$%'\\,|()[]łé😀 "), min_size=1, max_size=5).map(
    lambda part: part.strip() or "*"
)
PATTERNS = st.builds(TablePattern, PARTS, PARTS)
PATTERN_SETS = st.builds(
    TablePatterns,
    st.lists(PATTERNS, min_size=1, max_size=3).map(tuple),
    st.lists(PATTERNS, max_size=2).map(tuple),
)
NAMES = IDENTIFIERS | st.text(st.sampled_from("ab_AB😀ł$ .\n"), min_size=1, max_size=5)


@given(PATTERN_SETS, NAMES, NAMES)
@example(TablePatterns.parse(("*.*",)), "tributary", "heartbeat")
@example(TablePatterns.parse(("*.*",)), "a.b", "c")
@example(TablePatterns.parse(("*.*",)), "public", "ła")
@example(TablePatterns.parse(("*.*",)), '"public', "a")
@example(TablePatterns.parse(("*.*",)), 'public"', "a")
@example(TablePatterns.parse(("*.*",)), "public", '"a')
@example(TablePatterns.parse(("*.*",)), "public", 'a"')
@example(TablePatterns.parse(("public.*", "!public.audit")), "public", "audit\n")
@example(TablePatterns.parse(("public.*",)), "PUBLIC", "a")
@example(TablePatterns.parse(("*.*",)), "public", " ")
def test_the_regular_expression_for_debezium_agrees_with_the_patterns(
    patterns: TablePatterns, schema: str, table: str
) -> None:
    # Debezium matches the whole of schema.table and ignores case unless the expression says otherwise.
    is_match = re.fullmatch(patterns.debezium_regex, f"{schema}.{table}", re.IGNORECASE) is not None
    assert is_match == patterns.matches(schema, table)


@given(PATTERN_SETS)
def test_debezium_does_not_split_the_regular_expression(patterns: TablePatterns) -> None:
    assert "," not in patterns.debezium_regex
    assert patterns.debezium_regex.strip() == patterns.debezium_regex


@given(PATTERNS, NAMES, NAMES)
def test_a_pattern_matches_as_a_shell_matches_file_names(
    pattern: TablePattern, schema: str, table: str
) -> None:
    def shell(wildcard: str, name: str) -> bool:
        return fnmatch.fnmatchcase(name, wildcard.replace("[", "[[]"))

    assert pattern.matches(schema, table) == (shell(pattern.schema, schema) and shell(pattern.table, table))


@given(PATTERNS)
def test_a_pattern_is_read_back_from_its_text(pattern: TablePattern) -> None:
    assert TablePattern.parse(str(pattern)) == pattern


@given(PATTERN_SETS, NAMES, NAMES)
def test_an_excluded_table_is_never_taken(patterns: TablePatterns, schema: str, table: str) -> None:
    if any(pattern.matches(schema, table) for pattern in patterns.exclude):
        assert not patterns.matches(schema, table)


@pytest.mark.parametrize(
    "text", ["public", "public.", ".orders", "a.b.c", "", "public. orders ", " public.a"]
)
def test_a_text_that_is_not_a_pattern_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(NotATablePattern, match=re.escape('"public.*"')):
        TablePattern.parse(text)


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [("public.*", True), ("public.**", True), ("public.a*", False), ("p*.*", False), ("p?.*", False)],
)
def test_a_whole_schema_pattern_names_one_schema_and_matches_all_its_tables(
    text: str, is_whole: bool
) -> None:
    assert TablePattern.parse(text).is_whole_schema == is_whole
