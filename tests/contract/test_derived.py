"""The lake file says which tables are derived, and an error names the place of a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tributary.contract.derivations import (
    DerivedInput,
    Input,
    LakeInput,
    StreamDerivation,
    TableDerivation,
    TopicInput,
    depend_on,
    lineage,
    parse_sql,
    read_derivations,
)
from tributary.contract.derived import derived_table
from tributary.contract.lake import Lake, LakeFileError, parse_lake

HEAD = """
[lake]
name = "shop"
[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
[topic.purchases]
columns = { id = "bigint", at = "timestamptz" }
event_time = "at"
watermark = "10m"
"""


def lake(text: str) -> Lake:
    return parse_lake(HEAD + text)


def derived(name: str, sql: str) -> str:
    return f'[derived.{name}]\nkey = ["id"]\nsql = """{sql}"""\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[derived.a]\nkey = ["id"]\n', r"\[derived.a\]: not one query: found none"),
        ('[derived.a]\nkey = ["id"]\nsql = "x"\nfile = "x.sql"\n', "not one query: found sql and file"),
        ('[derived.a]\nkey = ["id"]\npython = "x.py"\n', "inputs and query do not fit"),
        ('[derived.a]\nkey = ["id"]\nsql = "x"\ninputs = ["y"]\n', "inputs and query do not fit"),
        ('[derived.a]\nkey = ["_key"]\nsql = "x"\n', "not a column's name: found _key"),
        ('[derived.a]\nkey = ["id"]\nfile = "../x.sql"\n', "a path below the folder of the lake file"),
        ('[derived.A]\nkey = ["id"]\nsql = "x"\n', "lower-case letters"),
        ('[derived.purchases]\nkey = ["id"]\nsql = "x"\n', "a topic and a derived table with one name"),
        ('[derived.a]\nkey = ["id"]\nsql = "x"\ntopic = "purchases"\n', "a topic that is also read"),
        (
            '[derived.a]\nkey = ["id"]\nsql = "x"\ntopic_format = "avro"\n[registry]\nkind = "glue"\n',
            r"\[derived.a\].topic_format: a format of nothing: found no topic",
        ),
        (
            '[derived.a]\nkey = ["id"]\nsql = "x"\ntopic = "a"\nformat = "csv"\n',
            r"\[derived.a\].format: a format of nothing: found no folder",
        ),
        (
            '[derived.a]\nkey = ["id"]\nsql = "x"\ntopic = "a"\ntopic_format = "avro"\n',
            r"\[derived.a\].topic_format: Avro without a schema registry",
        ),
        (
            '[derived.a]\nkey = ["id"]\nsql = "x"\ntopic = "shop.shop.public.orders"\n',
            "a topic of the lake itself: found shop.shop.public.orders",
        ),
        (
            '[derived.a]\nkey = ["id"]\nsql = "x"\ntopic = "__tributary.shop.connect-offsets"\n',
            "a topic of the lake itself",
        ),
        (
            '[topic.b]\ncolumns = { kafka_offset = "bigint" }\n',
            "column of every topic has: found kafka_offset",
        ),
        ('[topic.b]\ncolumns = { n = "numeric(39,2)" }\n', r"Spark cannot hold: found n: numeric\(39,2\)"),
        ('[topic.b]\ncolumns = { n = "numeric(3,4)" }\n', r"Spark cannot hold: found n: numeric\(3,4\)"),
        (
            '[topic.b]\ncolumns = { n = "date", id = "bigintt" }\n',
            "for the column id, instead of 'bigintt', one of boolean",
        ),
        ('[topic.b]\ncolumns = { id = "bytea" }\n', "a type that JSON cannot bring: found id: bytea"),
        ('[topic.b]\ncolumns = { id = "bigint" }\nevent_time = "id"\n', "no time of an event: found id"),
        ('[topic.b]\ncolumns = { id = "bigint" }\nwatermark = "1m"\n', "a watermark without a time"),
        ('[topic.b]\ncolumns = { id = "bigint" }\nunique = ["no"]\n', "an unknown column: found no"),
    ],
)
def test_a_mistake_is_told_with_its_entry(text: str, told: str) -> None:
    with pytest.raises(LakeFileError, match=told):
        lake(text)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ('topic = "t"', 'topic = "t"', "a topic of two derived tables: found t"),
        ('folder = "s3://b/x"', 'folder = "s3://b/x/"', "a folder of two derived tables: found s3://b/x/"),
        ('folder = "s3://b/x"', 'folder = "s3://b/x/y"', "a folder of two derived tables: found s3://b/x/y"),
        ('folder = "s3://b/x/y"', 'folder = "s3://b/x"', "a folder of two derived tables: found s3://b/x"),
    ],
)
def test_two_derived_tables_cannot_write_the_same_output(one: str, other: str, told: str) -> None:
    text = f"{derived('a', 'SELECT 1')}{one}\n{derived('b', 'SELECT 1')}"
    with pytest.raises(LakeFileError, match=told):
        lake(f"{text}{other}\n")
    for apart in ('topic = "u"', 'folder = "s3://b/xy"'):
        assert len(lake(f"{text}{apart}\n").derived) == 2


def test_a_lake_with_aws_writes_no_folder_of_one_machine() -> None:
    text = f'{derived("a", "SELECT 1")}folder = "/tmp/totals"\n'
    assert lake(text).derived
    with pytest.raises(LakeFileError, match=r"\[derived.a\].folder: a folder of one machine .*found /tmp"):
        lake(f'{text}[aws]\nregion = "eu-west-1"\n')


def test_a_derived_table_cannot_have_the_name_of_a_table_that_a_source_names() -> None:
    text = HEAD.replace('"public.*"', '"public.*", "sales.totals"') + derived(
        "totals", "SELECT id FROM orders"
    )
    with pytest.raises(LakeFileError, match="a name that a table of a source has: found totals"):
        parse_lake(text)


def test_a_derived_table_is_kept_by_the_defaults_but_without_rows_that_are_gone() -> None:
    text = derived("a", "SELECT id FROM orders") + '[defaults]\ndeletes = "soft"\nbuckets = 7\n'
    policy = lake(text).policy(derived_table("a"))
    assert (policy.deletes, policy.buckets) == ("hard", 7)


def test_a_source_cannot_have_the_name_under_which_derived_tables_are_stored() -> None:
    text = HEAD.replace("source.shop", "source.derived") + derived("a", "SELECT id FROM orders")
    with pytest.raises(LakeFileError, match="a reserved name"):
        parse_lake(text)


def test_a_query_reads_what_stands_after_from_and_join_wherever_it_stands() -> None:
    text = (
        "WITH recent AS (SELECT * FROM purchases), a AS (SELECT 'FROM nowhere' FROM recent) "
        "SELECT * FROM a, tables.big b JOIN `shop`.public.`odd name` USING (id) "
        "WHERE id IN (SELECT id FROM public.orders) -- FROM comments"
    )
    found = parse_sql(lake(derived("big", "SELECT id FROM orders")), text, "here")
    wanted: tuple[Input, ...] = (
        TopicInput("purchases"),
        DerivedInput("big"),
        LakeInput(("shop", "public", "odd name")),
        LakeInput(("public", "orders")),
    )
    assert found.inputs == wanted
    over = found.over({one: f"v{number}" for number, one in enumerate(wanted)})
    assert over == (
        "WITH recent AS (SELECT * FROM v0 AS `purchases`), a AS (SELECT 'FROM nowhere' FROM recent) "
        "SELECT * FROM a, v1 b JOIN v2 AS `odd name` USING (id) "
        "WHERE id IN (SELECT id FROM v3 AS `orders`) -- FROM comments"
    )


def test_windows_of_time_leave_the_names_at_their_places() -> None:
    text = "SELECT window.start AS id FROM purchases p GROUP BY WINDOW (at, '10 minutes')"
    (reference,) = parse_sql(lake(""), text, "here").references
    assert text[reference.start : reference.end] == "purchases"
    assert reference.has_alias


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELEC id FROM orders", "not SQL that Spark reads"),
        ("SELECT id FROM orders WHERE", "A part of Where is missing. Line 1, Col: 27, expected SELECT"),
        ("SELECT id FROM orders; SELECT 1", "not one SELECT"),
        ("SELECT id FROM (orders", "not SQL that Spark reads"),
        ("SELECT 1 AS id", "reads no table"),
        ("DELETE FROM orders", "not one SELECT"),
        ("SELECT id, now() AS at FROM orders", "does not follow from its inputs alone"),
        ("SELECT id FROM orders WHERE day > current_date", "does not follow from its inputs alone"),
        ("SELECT reflect('java.util.UUID', 'randomUUID') AS id FROM orders", "does not follow from"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "does not follow from its inputs alone"),
        ("SELECT id FROM derived.tables.no", "a derived table that the lake file does not have: found no"),
        ("SELECT uuid() AS id FROM orders", "does not follow from its inputs alone"),
        ("SELECT id FROM other.public.orders", "unknown source: found other.public.orders"),
        ("SELECT id FROM a", "found a reads a"),
    ],
)
def test_a_query_that_cannot_be_used_stops_only_its_own_table(sql: str, told: str) -> None:
    text = derived("a", sql) + derived("b", "SELECT id FROM orders")
    found = read_derivations(lake(text), Path())
    assert [one.name for one in found.ordered] == ["b"]
    assert told in str(found.errors["a"])


def test_a_missing_file_is_told_with_its_path(tmp_path: Path) -> None:
    found = read_derivations(lake('[derived.a]\nkey = ["id"]\nfile = "a.sql"\n'), tmp_path)
    assert str(found.errors["a"]).count(f"{tmp_path}/a.sql") == 1


def test_a_table_of_events_is_one_that_reads_a_topic() -> None:
    text = derived("a", "SELECT p.id FROM purchases p JOIN b USING (id)") + derived("b", "SELECT id FROM c")
    kinds = {one.name: type(one) for one in read_derivations(lake(text), Path()).ordered}
    assert kinds == {"a": StreamDerivation, "b": TableDerivation}


@given(
    st.lists(st.sets(st.integers(0, 6), max_size=3), min_size=7, max_size=7),
    st.permutations(range(7)),
)
def test_each_table_comes_after_those_that_it_reads_unless_they_read_each_other(
    reads: list[set[int]], order: list[int]
) -> None:
    def sql(table: int) -> str:
        return f"SELECT id FROM {', '.join(['orders', *(f't{one}' for one in sorted(reads[table]))])}"

    found = read_derivations(lake("".join(derived(f"t{table}", sql(table)) for table in order)), Path())
    reached = {table: set(reads[table]) for table in range(7)}
    for _ in range(7):
        for table in range(7):
            reached[table] |= {far for near in reached[table] for far in reads[near]}
    assert set(found.errors) == {f"t{table}" for table in range(7) if table in reached[table]}
    names = [one.name for one in found.ordered]
    assert set(names) | set(found.errors) == {f"t{table}" for table in range(7)}
    for place, one in enumerate(found.ordered):
        assert one.needs - set(found.errors) <= set(names[:place])


def test_a_changed_query_or_key_has_another_digest() -> None:
    texts = [
        derived("a", "SELECT id FROM orders"),
        derived("a", "SELECT id FROM orders "),
        derived("a", "SELECT id FROM orders").replace('["id"]', '["id", "n"]'),
    ]
    digests = [read_derivations(lake(text), Path()).ordered[0].digest for text in texts]
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('id = "bigint"', 'id = "numeric(20,0)"'),
        ('id = "bigint"', 'n = "bigint", id = "bigint"'),
        ('watermark = "10m"', 'watermark = "20m"'),
        ('event_time = "at"', 'event_time = "at"\nunique = ["id"]'),
        ("[topic.purchases]", '[topic.purchases]\ntopic = "sales.purchases"'),
    ],
)
def test_a_topic_s_section_is_a_part_of_the_queries_that_read_it(was: str, now: str) -> None:
    of_topic, of_table = "SELECT id FROM purchases", "SELECT id FROM orders"
    text = HEAD + derived("a", of_topic) + derived("b", of_table)
    assert was in text
    before, after = (
        {one.name: one.digest for one in read_derivations(parse_lake(each), Path()).ordered}
        for each in (text, text.replace(was, now))
    )
    assert before["a"] != after["a"]
    assert before["b"] == after["b"]


def test_lineage_names_each_table_with_all_that_it_reads() -> None:
    text = derived("a", "SELECT id FROM b JOIN purchases USING (id)") + derived(
        "b", "SELECT id FROM public.o"
    )
    ordered = read_derivations(lake(text), Path()).ordered
    assert list(lineage(ordered)) == [("b", "public.o"), ("a", "b"), ("a", "topic purchases")]
    assert [one.name for one in depend_on(["a"], ordered)] == ["b", "a"]
    assert [one.name for one in depend_on(["b"], ordered)] == ["b"]
