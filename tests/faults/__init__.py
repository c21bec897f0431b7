"""Assertions in the shared modules of these tests show the differing values, as in the tests themselves."""

import pytest

pytest.register_assert_rewrite("tests.faults.lake_on_s3", "tests.faults.whole_pipeline")
