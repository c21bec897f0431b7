"""The catalog shows a derived table with the columns that it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from pyspark.sql.types import LongType, StringType

from spark_app.catalog.catalog_table import catalog_table
from spark_app.derive.derived_table import DerivedTable
from spark_app.derive.opening import _offered
from spark_app.derive.result_rows import Columns
from tributary.contract.derived import derived_table
from tributary.contract.lake import TablePolicy
from tributary.contract.naming import LakeNames


def test_a_derived_table_has_only_three_columns_of_tributary_in_the_catalog() -> None:
    name = derived_table("totals")
    columns = Columns((("country", StringType()), ("orders", LongType())))
    stored = SimpleNamespace(name=name, hudi=None, columns=lambda: columns)
    offered = _offered(cast(DerivedTable, stored), ("country",))
    assert offered.columns is not None
    glue_name = LakeNames("shop").glue_table(name)
    entry = catalog_table(glue_name, "s3a://shop-silver/x", "totals", offered.columns, TablePolicy())
    own = [column.name for column in entry.columns if not column.name.startswith("_hoodie_")]
    assert own == ["_key", "_op", "_seq", "country", "orders"]
    assert glue_name == "derived__tables__totals"
