"""Saved Athena queries on the demo's ticket shop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName


@dataclass(frozen=True)
class DemoQuery:
    """A saved query. `id` is unique among the queries."""

    id: str
    title: str
    sql: str


def demo_queries(lake: Lake) -> Iterator[DemoQuery]:
    """Yield the queries for each source that includes the demo's tables and whose cluster contains them."""
    if lake.aws is None or not lake.aws.database.demo_schema:
        return
    for source in lake.connected_sources:
        if source.name not in lake.aws.source and all(source.matches("public", name) for name in _TABLES):
            tables = {name: _rows(lake, TableName(source.name, "public", name)) for name in _TABLES}
            for query, title, sql in _QUERIES:
                of_source = f"{query}Of{source.name.title().replace('_', '')}"
                yield DemoQuery(of_source, f"{source.name}: {title}", sql.format(**tables).strip())


def _rows(lake: Lake, table: TableName) -> str:
    """Return the table's SQL for a FROM clause, without softly deleted rows."""
    name = f'"{lake.names.glue_database}"."{lake.names.glue_table(table)}"'
    soft = lake.policy(table).deletes == "soft"
    return f"(SELECT * FROM {name} WHERE NOT coalesce(_deleted, false))" if soft else name


_TABLES = ("category", "event", "sales", "users", "venue")

_QUERIES = (
    (
        "NewestSales",
        "the newest sales, and the change that each row comes from",
        """
SELECT s.salesid, e.eventname, s.qtysold, s.pricepaid, s.saletime, s._op, s._source_ts, s._topic, s._offset
FROM {sales} AS s
JOIN {event} AS e ON e.eventid = s.eventid
ORDER BY s._source_ts DESC
LIMIT 20
""",
    ),
    (
        "BestSellingEvents",
        "the events that sold best",
        """
SELECT e.eventname, v.venuename, v.venuecity, sum(s.qtysold) AS tickets, sum(s.pricepaid) AS turnover
FROM {sales} AS s
JOIN {event} AS e ON e.eventid = s.eventid
JOIN {venue} AS v ON v.venueid = e.venueid
GROUP BY e.eventname, v.venuename, v.venuecity
ORDER BY turnover DESC
LIMIT 10
""",
    ),
    (
        "TurnoverByCategory",
        "tickets and turnover of each category, month by month",
        """
SELECT date_trunc('month', s.saletime) AS month, c.catgroup, c.catname,
       sum(s.qtysold) AS tickets, sum(s.pricepaid) AS turnover, sum(s.commission) AS commission
FROM {sales} AS s
JOIN {event} AS e ON e.eventid = s.eventid
JOIN {category} AS c ON c.catid = e.catid
GROUP BY date_trunc('month', s.saletime), c.catgroup, c.catname
ORDER BY month, turnover DESC
""",
    ),
    (
        "BestBuyers",
        "who has spent most, and on how many sales",
        """
SELECT u.userid, u.firstname, u.lastname, count(*) AS sales, sum(s.pricepaid) AS spent
FROM {sales} AS s
JOIN {users} AS u ON u.userid = s.buyerid
GROUP BY u.userid, u.firstname, u.lastname
ORDER BY spent DESC
LIMIT 10
""",
    ),
    (
        "Freshness",
        "rows of each table, and when its newest change was committed in the database",
        """
SELECT 'sales' AS name, count(*) AS num_rows, max(_source_ts) AS newest FROM {sales}
UNION ALL SELECT 'event', count(*), max(_source_ts) FROM {event}
UNION ALL SELECT 'users', count(*), max(_source_ts) FROM {users}
UNION ALL SELECT 'venue', count(*), max(_source_ts) FROM {venue}
UNION ALL SELECT 'category', count(*), max(_source_ts) FROM {category}
ORDER BY name
""",
    ),
)
