"""Limit what Avro's reader takes from one record, with the Java class AvroLimits."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession

from spark_app.jvm.java_classes import java_class
from tributary.contract.avro_limits import AVRO_LIMITS


def limited_avro(avro: Column) -> Column:
    java = java_class(SparkSession.active(), "AvroLimits")
    return Column(java.limited(avro._jc, dict(AVRO_LIMITS)))
