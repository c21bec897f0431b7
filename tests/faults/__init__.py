"""What these tests share says what differs, as the tests themselves do."""

import pytest

pytest.register_assert_rewrite("tests.faults.lake_on_s3", "tests.faults.whole_pipeline")
