"""Find clauses of DuckDB's SQL that Athena does not have, and that the translator writes as they are."""

from __future__ import annotations

from sqlglot import exp

from stacks.analytics.athena_types import NoSureTranslation

_JOINS = {
    "ASOF": "Join with the conditions, and keep the latest row with row_number().",
    "POSITIONAL": "Join by a key, such as row_number().",
    "SEMI": "Write WHERE key IN (SELECT …).",
    "ANTI": "Write WHERE key NOT IN (SELECT …).",
}
_WITH_COLUMNS = "Name the columns."


def refuse_clauses_that_athena_lacks(tree: exp.Query) -> None:
    """Raise NoSureTranslation for the first clause that Athena does not have."""
    for part in tree.walk():
        match part:
            case exp.Pivot():
                raise NoSureTranslation(part, "Write an aggregate with FILTER for each column.")
            case exp.Join() if words := {part.method.upper(), part.kind.upper()} & _JOINS.keys():
                raise NoSureTranslation(part, _JOINS[min(words)])
            case exp.SetOperation() if part.args.get("by_name"):
                raise NoSureTranslation(part, "Name the columns of both queries in the same order.")
            case exp.Star() if any(part.args.get(key) for key in ("except_", "replace", "rename")):
                raise NoSureTranslation(part, _WITH_COLUMNS)
            case exp.TableSample():
                raise NoSureTranslation(part, "Read all rows, or choose them with WHERE.")
            case exp.Limit() if "%" in part.sql("duckdb") or "PERCENT" in part.sql("duckdb"):
                raise NoSureTranslation(part, "Limit the number of rows.")
            case exp.Select():
                _refuse_aliases(part)


def _refuse_aliases(select: exp.Select) -> None:
    """Refuse aliases of the SELECT list in WHERE, in HAVING and in the list. Athena knows none there."""
    computed = {
        item.alias: item.this
        for item in select.expressions
        if isinstance(item, exp.Alias)
        and all(column.name != item.alias for column in item.this.find_all(exp.Column))
    }
    places = [select.args[key] for key in ("where", "having") if select.args.get(key) is not None]
    for place in [*places, *select.expressions]:
        for column in place.find_all(exp.Column):
            is_own = column.find_ancestor(exp.Query) is select and not column.table
            if is_own and column.name in computed:
                written = computed[column.name].sql("duckdb")
                raise NoSureTranslation(
                    column,
                    f"Write {written} instead of its alias. If it is a column of the table, "
                    f"write the table's name before it.",
                )
