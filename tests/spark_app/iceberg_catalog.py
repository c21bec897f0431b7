"""A catalog of Iceberg tables in a folder, for tests of bronze."""

from __future__ import annotations

import uuid
from pathlib import Path

from pyspark.sql import SparkSession


def iceberg_catalog(spark: SparkSession, warehouse: Path) -> str:
    """Give the session a new catalog of tables below the folder, and return its name."""
    catalog = f"bronze_{uuid.uuid4().hex}"
    for name, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": str(warehouse),
    }.items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{name}", value)
    return catalog
