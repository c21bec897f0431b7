"""The command `export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import output, print_json
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from tributary.contract.table_name import TableName


def export(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Such as sales or shop.public.sales.")],
    to: Annotated[
        Literal["parquet", "csv", "json", "delta"],
        typer.Option("--to", help="The form. json is one object a line, and delta a folder: a Delta table."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The file. Without it, TABLE.FORM in the current folder."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="The rows as they were at this instant (see tributary history) or UTC time.",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Only rows for which this condition holds, in SQL."),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain",
            help="Without Tributary's own columns, and without rows that are only marked as deleted.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Write a table's rows to a file, as they are or as they were at a time, without Spark.

    The file has the rows of one commit, and appears only when it is complete. Reading takes memory for the
    whole table. In JSON, a decimal is text, and bytes are in base64, as in tributary query --json. In CSV,
    NULL is empty, and an empty text is "". A Delta table needs the extra tributary[delta]. With --overwrite,
    the rows become its next version.

    Example: tributary export sales --to parquet --where "qtysold > 3"
    """
    from tributary.api.rows import without_key_parts
    from tributary.cli.export_delta import write_delta
    from tributary.cli.export_files import write_rows

    opened = Workspace.open(lake, state).open_lake
    name = opened.table(table).name
    path = out or Path(f"{name.table.replace('/', '_')}.{to}")
    found = opened.sql(query_for(name, where), as_of)
    if plain:
        found = as_in_the_source(without_key_parts(found, opened.lake.policy(name)))
    if to == "delta":
        write_delta(found, path, overwrite=overwrite)
    else:
        write_rows(found, to, path, overwrite=overwrite)
    if as_json:
        print_json({"table": str(name), "file": str(path), "rows": found.num_rows})
    else:
        output.print(
            f"{found.num_rows:,} rows of {name} are in {path}.", markup=False, highlight=False, soft_wrap=True
        )


def query_for(name: TableName, where: str | None) -> str:
    """Return the query for a table's rows that meet a condition."""
    parts = (name.source, name.schema, name.table)
    relation = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    # On a line of its own, so that a comment at its end hides no bracket.
    condition = "" if where is None else f" WHERE (\n{where}\n)"
    return f"SELECT * FROM {relation}{condition}"


def as_in_the_source(found: pa.Table) -> pa.Table:
    """Return the rows that the source still has, with its columns alone."""
    import pyarrow.compute as pc

    from spark_app.columns.table_columns import APP_COLUMNS, DELETED

    if DELETED in found.column_names:
        found = found.filter(pc.invert(pc.fill_null(found[DELETED], False)))
    own = {*APP_COLUMNS.fieldNames(), DELETED}
    return found.drop_columns([name for name in found.column_names if name in own])
