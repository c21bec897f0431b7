"""The errors after which it is worth to ask again."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

PASSING_FAILURES = (Py4JError, PySparkException, OSError)
"""The errors that Kafka, Kinesis, S3 and Spark raise if they do not answer, and in other cases."""
