"""The notebook runs to its end and shows the numbers that PostgreSQL computes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.examples.conftest import PROJECT, RunningLake

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]

REVENUE = (
    "SELECT catname, sum(pricepaid) AS revenue"
    " FROM sales JOIN event USING (eventid) JOIN category USING (catid) GROUP BY 1"
)


def test_the_notebook_shows_the_database_s_numbers(
    programs: Path, demo_lake: RunningLake, tmp_path: Path
) -> None:
    notebook = tmp_path / "lake.ipynb"
    shutil.copyfile(PROJECT / "examples" / "notebook" / "lake.ipynb", notebook)
    command = [str(programs / "jupyter"), "execute", "--inplace", str(notebook)]
    done = subprocess.run(command, env=demo_lake.variables, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = _texts(notebook)

    (listings,) = demo_lake.rows("SELECT count(*) AS n FROM listing")
    assert f"{listings['n']:,} now" in shown
    then, now = _numbers(r"([\d,]+) listings after the first commit, ([\d,]+) now", shown)
    inserted, _, deleted = _numbers(r"(\d+) inserted, (\d+) updated, (\d+) deleted", shown)
    assert then + inserted - deleted == now == listings["n"]
    for row in demo_lake.rows(REVENUE):
        assert f"{row['catname']} " in shown
        assert str(row["revenue"]) in shown
    assert "Did you mean shop.public.users" in shown


def _numbers(pattern: str, shown: str) -> list[int]:
    found = re.search(pattern, shown)
    assert found is not None, pattern
    return [int(text.replace(",", "")) for text in found.groups()]


def _texts(notebook: Path) -> str:
    """Return what all cells have printed and returned."""
    cells = json.loads(notebook.read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return "\n".join(
        "".join(output.get("text", ()) or output.get("data", {}).get("text/plain", ())) for output in outputs
    )
