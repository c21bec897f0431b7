"""A change of a row is followed to the keys of a result only if the query's form allows it."""

from __future__ import annotations

import pytest

from spark_app.derive.touched import AllKeys, TouchedKeys, touched_keys


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT DISTINCT id FROM a", "it has distinct"),
        ("SELECT id FROM a LIMIT 1", "it has limit"),
        ("WITH b AS (SELECT 1 AS id) SELECT id FROM b", "it has with"),
        ("SELECT id FROM a UNION ALL SELECT id FROM b", "it is not a single SELECT"),
        ("SELECT id FROM a WHERE id IN (SELECT id FROM b)", "it has a query in the query"),
        ("SELECT id FROM (SELECT id FROM a)", "it has a query in the query"),
        ("SELECT id, sum(x) OVER (PARTITION BY y) AS s FROM a", "it has a window over rows"),
        ("SELECT id FROM a GROUP BY ROLLUP (id)", "it groups in more than one way"),
        ("SELECT id FROM a GROUP BY id WITH CUBE", "it groups in more than one way"),
        ("SELECT id FROM a GROUP BY GROUPING SETS ((id), ())", "it groups in more than one way"),
        ("SELECT a.id FROM a FULL JOIN b ON a.id = b.id", "a join other than"),
        ("SELECT b.id FROM a RIGHT JOIN b ON a.id = b.id", "a join other than"),
        ("SELECT id FROM a LEFT ANTI JOIN b ON a.id = b.id", "a join other than"),
        ("SELECT id FROM a NATURAL JOIN b", "a join other than"),
        ("SELECT a.id FROM a CROSS JOIN b", "a join"),
        ("SELECT a.id FROM a, b WHERE a.id = b.id", "a join"),
        ("SELECT b.id FROM a LEFT JOIN b ON a.id = b.a", "a table that a left join adds"),
        ("SELECT b.x.id AS id FROM a LEFT JOIN b ON a.id = b.a", "a table that a left join adds"),
        ("SELECT id FROM a LEFT JOIN b ON a.id = b.a", "do not name their tables"),
        ("SELECT max(id) AS id FROM a", "does not follow from one row"),
        ("SELECT my_total(id) AS id FROM a", "does not follow from one row"),
        ("SELECT explode(ids) AS id FROM a", "does not follow from one row"),
        ("SELECT x FROM a", "does not name the column id once"),
        ("SELECT * FROM a JOIN b ON a.id = b.id", "does not name the column id once"),
        ("SELECT id FROM a TABLESAMPLE (10 PERCENT)", "reads a table in a special way"),
        ("SELECT a.id FROM a LATERAL VIEW explode(x) t AS y", "it has laterals"),
        ("SELECT window(at, '1 hour') AS id FROM a", "it has windows of time"),
    ],
)
def test_other_forms_are_computed_in_full(query: str, reason: str) -> None:
    form = touched_keys(query, ("id",))
    assert isinstance(form, AllKeys)
    assert reason in form.reason


def test_a_changed_row_that_a_left_join_adds_is_only_in_joined_rows_with_a_partner() -> None:
    query = (
        "SELECT c.id AS id, count(*) AS n FROM customers c LEFT JOIN orders AS o ON o.c = c.id "
        "LEFT JOIN items ON items.o = o.id WHERE o.paid GROUP BY c.id HAVING count(*) > 1"
    )
    form = touched_keys(query, ("id",))
    assert isinstance(form, TouchedKeys)
    views = ["v0", "v1", "v2"]
    assert form.query(0, views) == (
        "SELECT DISTINCT c.id AS id FROM v0 AS `c` LEFT JOIN v1 AS `o` ON o.c = c.id "
        "LEFT JOIN v2 AS `items` ON items.o = o.id"
    )
    assert "FROM v0 AS `c` JOIN v1 AS `o` ON o.c = c.id LEFT JOIN v2" in form.query(1, views)
    assert "LEFT JOIN v1 AS `o` ON o.c = c.id JOIN v2 AS `items`" in form.query(2, views)


def test_all_columns_of_one_table_have_the_key_among_them() -> None:
    form = touched_keys("SELECT * FROM shop.public.orders WHERE amount > 1", ("id", "line"))
    assert isinstance(form, TouchedKeys)
    assert form.query(0, ["v0"]) == "SELECT DISTINCT id AS id, line AS line FROM v0 AS `orders`"
