"""The console says why it knows nothing, instead of showing zeros."""

from __future__ import annotations

from pathlib import Path

from tests.operations.test_alerts import workspace
from tributary.console.local_lake import LocalLake


def test_before_the_first_start_the_page_says_how_to_start(tmp_path: Path) -> None:
    view = LocalLake(workspace(tmp_path)).read_view()
    assert view.problem is not None
    assert "The pipeline was never started here" in view.problem
    assert "tributary up" in view.problem
    assert not view.is_well
