"""Hudi's options follow from a table's policy, and put a commit's metadata where Hudi finds it."""

from __future__ import annotations

import pytest

from spark_app.columns.app_columns import DELETE_MARKER
from spark_app.hudi.options import metadata_options, write_options
from spark_app.ledger.commits import commit_metadata, replacement_metadata
from spark_app.ledger.ledger import Ledger
from spark_app.wire.decode import DELETE
from tributary.contract.lake import TablePolicy

PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"


def test_hudi_records_all_texts_of_a_commit_and_no_option_of_its_own() -> None:
    metadata = replacement_metadata(Ledger("topic"), ["name"])
    options = metadata_options(metadata)
    assert options.items() >= metadata.items()
    assert all(key.startswith(options[PREFIX]) for key in metadata)
    assert not any(key.startswith(options[PREFIX]) for key in write_options("things", TablePolicy()))


def test_a_commit_without_metadata_has_no_option_for_it() -> None:
    assert metadata_options({}) == {}


def test_texts_under_keys_that_begin_differently_are_refused() -> None:
    with pytest.raises(ValueError, match="under the keys _ledger, note: all of them have to begin with note"):
        metadata_options({**commit_metadata(Ledger("topic")), "note": "text"})


def test_a_hard_delete_is_marked_as_debezium_marks_it() -> None:
    hard, soft = (write_options("things", TablePolicy(deletes=deletes)) for deletes in ("hard", "soft"))
    assert hard["hoodie.payload.delete.marker"] == DELETE_MARKER == DELETE
    assert "hoodie.payload.delete.marker" not in soft


@pytest.mark.parametrize(
    ("partition_by", "generator", "fields"),
    [
        ((), "NonpartitionedKeyGenerator", ""),
        (("region",), "SimpleKeyGenerator", "region"),
        (("region", "_partition"), "CustomKeyGenerator", "region:SIMPLE,_partition:SIMPLE"),
    ],
)
def test_the_key_generator_follows_from_the_number_of_partition_columns(
    partition_by: tuple[str, ...], generator: str, fields: str
) -> None:
    options = write_options("things", TablePolicy(partition_by=partition_by))
    assert options["hoodie.datasource.write.keygenerator.class"] == f"org.apache.hudi.keygen.{generator}"
    assert options["hoodie.datasource.write.partitionpath.field"] == fields


def test_only_a_merge_on_read_table_has_options_against_compaction_within_a_commit() -> None:
    merge_on_read = write_options("things", TablePolicy(storage="merge_on_read"))
    copy_on_write = write_options("things", TablePolicy(storage="copy_on_write"))
    assert merge_on_read["hoodie.compact.inline"] == "false"
    assert merge_on_read["hoodie.compact.schedule.inline"] == "false"
    assert "hoodie.compact.inline" not in copy_on_write
