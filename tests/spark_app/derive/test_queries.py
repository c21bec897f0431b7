"""A mistake in a Python file is an error of that derived table alone, and the error names the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from spark_app.derive.queries import result_of
from tests.contract.test_derived import lake
from tributary.contract.derivations import QueryNotUsable, read_derivations

NO_SPARK = cast(SparkSession, None)


def run(source: str, folder: Path) -> None:
    """Call the function of a Python file with two inputs."""
    (folder / "q.py").write_text(source)
    text = '[derived.a]\nkey = ["id"]\npython = "q.py"\ninputs = ["orders", "customers"]\n'
    (derivation,) = read_derivations(lake(text), folder).ordered
    frames: dict[Any, Any] = {one: object() for one in derivation.inputs}
    with result_of(NO_SPARK, derivation, frames):
        pass


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("derived = 1\n", "q.py: the Python file has no function derive"),
        (
            "def derive(orders, customers:\n",
            "q.py, line 1: the Python file cannot be used: found SyntaxError",
        ),
        ("import json\n\nimport no_such_module\n", "q.py, line 3: .*found ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", "q.py, line 2: .*found SystemExit: 3"),
        ("derive = 5\n", "not a function of the inputs: expected 2 parameters, one for each of orders, cust"),
        ("def derive(orders):\n    return orders\n", "not a function of the inputs: expected 2 parameters"),
        ("def derive(a, b, c):\n    return a\n", "not a function of the inputs"),
        ("def derive(a, b, *, c):\n    return a\n", "not a function of the inputs"),
        ("def derive(a, b, c=1):\n    return c\n", r"derive returned no DataFrame: found int"),
        ("def derive(*inputs):\n    return None\n", r"derive returned no DataFrame: found NoneType"),
        (
            "def derive(a, b):\n    return joined(a, b)\n\ndef joined(a, b):\n    raise ValueError('boom')\n",
            "q.py, line 5: derive ended with an error: found ValueError: boom",
        ),
        ("def derive(a, b):\n    return a.where('x')\n", "q.py, line 2: derive ended .*AttributeError"),
        (
            "from pyspark.errors import AnalysisException\n\ndef derive(a, b):\n"
            "    raise AnalysisException('no column x; line 1 pos 3')\n",
            "q.py, line 4: Spark cannot run the query: found no column x.",
        ),
        ("def derive(a, b):\n    raise SystemExit\n", "q.py, line 2: derive ended with an error"),
    ],
)
def test_a_mistake_in_a_python_file_is_told_with_its_place(source: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(QueryNotUsable, match=told):
        run(source, tmp_path)
