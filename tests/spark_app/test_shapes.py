"""What is found in the text of a payload before it is parsed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.shapes import Envelope

ENVELOPE_TEXTS = (
    "",
    '{"before":null,"after":',
    '},"source":{"version":',
    '"after":',
    "Zürich \u2028 東京 😀",
    "\\",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(ENVELOPE_TEXTS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.sampled_from(("id", "after", "source", "before", *ENVELOPE_TEXTS)) | st.text(max_size=5)
ROWS = st.none() | st.dictionaries(NAMES, VALUES, max_size=5)
ENVELOPES = st.builds(
    lambda before, after: {"before": before, "after": after, "source": {"version": "3.6"}, "op": "u"},
    ROWS,
    ROWS,
)


@settings(max_examples=20)
@given(envelopes=st.lists(ENVELOPES, min_size=1, max_size=60), is_ascii=st.booleans())
def test_the_names_of_a_rows_fields_are_those_of_after_whatever_the_row_holds(
    spark: SparkSession, envelopes: list[dict[str, Any]], is_ascii: bool
) -> None:
    texts = [json.dumps(e, separators=(",", ":"), ensure_ascii=is_ascii) for e in envelopes]
    events = spark.createDataFrame([(text,) for text in texts], "text string")

    found = events.select(Envelope().field_names(F.col("text")).alias("names")).collect()

    rows = [envelope["after"] for envelope in envelopes]
    assert [row["names"] for row in found] == [None if row is None else list(row) for row in rows]
