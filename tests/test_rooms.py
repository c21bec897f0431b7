"""Import rules beyond import-linter's contracts: the picture in the docs, libraries, and Spark's JVM."""

from __future__ import annotations

import ast
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import grimp
import pytest

from tests.committed import assert_documented

PROJECT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]
LIBRARIES_OF_THE_SPARK_APP = {"boto3", "botocore", "py4j", "pyspark", "sqlglot"}
"""The package for a cluster has only these, and pydantic for `tributary.contract`."""

INTERNALS = frozenset(
    {"_gateway", "_jc", "_jconf", "_jdf", "_jrdd", "_jschema", "_jsc", "_jsparkSession", "_jvm", "_jwrite"}
)
"""PySpark's attributes through which Python reaches Java objects."""

ROOMS_OF_JAVA = ("spark_app/jvm/", "spark_app/hudi/")
REACH_INTO_THE_JVM = {
    "spark_app/acceleration/choice.py": "looks up what the running class path has",
    "spark_app/derive/from_events.py": "looks into the plan of a query for groups",
    "spark_app/run/prompt_answers.py": "mends Py4J's connections to the JVM",
    "spark_app/run/text_files.py": "reads through Hadoop's file system, which knows S3's credentials",
    "spark_app/run/session.py": "trims Hadoop's configuration and caches Py4J's look-ups",
    "spark_app/sources/bronze_upkeep.py": "asks Iceberg to merge files and to expire snapshots",
    "spark_app/sources/files.py": "lists files through Hadoop's file system",
    "spark_app/sources/kafka.py": "asks Kafka for offsets with the client that Spark brings",
    "spark_app/sources/kinesis/landing.py": "expires snapshots with Iceberg's own interface",
    "spark_app/table/deleted_keys.py": "lists and deletes folders through Hadoop's file system",
    "spark_app/table/quarantine.py": "deletes through Hadoop's file system",
    "tributary/local/class_training/main.py": "loads the classes that a start of Spark needs",
}
"""Modules outside these folders that use Spark's Java objects, with the reason."""

NAME_CLASSES_OF_HUDI = {
    "spark_app/catalog/catalog_table.py": "Glue and Athena find a table's reader by these names",
}
"""Modules outside these folders that contain the name of one of Hudi's Java classes, with the reason."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    packages = SETTINGS["root_packages"]
    return grimp.build_graph(*packages, include_external_packages=True, cache_dir=None)


def layers(contract: str) -> list[list[str]]:
    """Return the modules of an import-linter contract, the highest layer first."""
    (found,) = (each for each in SETTINGS["contracts"] if each["id"] == contract)
    prefix = f"{found['containers'][0]}." if "containers" in found else ""
    return [
        [f"{prefix}{room.strip(' ()')}" for room in layer.replace(":", "|").split("|")]
        for layer in found["layers"]
    ]


def imports(graph: grimp.ImportGraph, rooms: Sequence[str]) -> dict[str, list[str]]:
    """Return the modules that each module imports, in the given order."""
    room_of = {module: room for room in rooms for module in {room, *graph.find_descendants(room)}}
    found = defaultdict(set)
    for module, room in room_of.items():
        for imported in graph.find_modules_directly_imported_by(module):
            if room_of.get(imported, room) != room:
                found[room].add(room_of[imported])
    return {room: [other for other in rooms if other in found[room]] for room in rooms}


def picture(graph: grimp.ImportGraph, contract: str) -> str:
    """Draw a contract: a line for each module, with an arrow to all that it imports."""
    rooms = [room for layer in layers(contract) for room in layer if room in graph.modules]
    width = max(map(len, rooms))
    lines = []
    for room, imported in imports(graph, rooms).items():
        text = ", ".join(imported) or "no other room"
        arrow = f"{room:{width}} ──► "
        lines.append(textwrap.fill(text, 110, initial_indent=arrow, subsequent_indent=" " * len(arrow)))
    return "\n".join(["```", *lines, "```"])


@pytest.mark.parametrize("contract", ["rooms", "spark-app"])
def test_the_picture_of_the_rooms_has_the_arrows_that_the_code_has(
    graph: grimp.ImportGraph, contract: str
) -> None:
    assert_documented("docs/architecture.md", f"imports: {contract}", picture(graph, contract))


def test_the_spark_app_imports_no_library_that_its_package_lacks(graph: grimp.ImportGraph) -> None:
    imported = {
        library.split(".")[0]
        for module in {"spark_app", *graph.find_descendants("spark_app")}
        for library in graph.find_modules_directly_imported_by(module)
    }
    own = set(SETTINGS["root_packages"])
    of_types = {name for name in imported if name.startswith("mypy_boto3_")}
    assert imported - own - sys.stdlib_module_names - of_types == LIBRARIES_OF_THE_SPARK_APP


def test_only_listed_modules_use_spark_s_java_objects() -> None:
    found = {
        path
        for path, tree in modules_outside_the_rooms_of_java()
        if any(isinstance(node, ast.Attribute) and node.attr in INTERNALS for node in ast.walk(tree))
    }
    assert found == set(REACH_INTO_THE_JVM)


def test_only_listed_modules_name_hudi_s_classes() -> None:
    found = {
        path
        for path, tree in modules_outside_the_rooms_of_java()
        if "org.apache.hudi" in " ".join(names_of_java(tree))
    }
    assert found == set(NAME_CLASSES_OF_HUDI)


def modules_outside_the_rooms_of_java() -> Iterator[tuple[str, ast.Module]]:
    for room in ("connectors", "spark_app", "stacks", "tributary"):
        for path in sorted((PROJECT / room).rglob("*.py")):
            name = path.relative_to(PROJECT).as_posix()
            if not name.startswith(ROOMS_OF_JAVA):
                yield name, ast.parse(path.read_text())


def names_of_java(tree: ast.Module) -> Iterator[str]:
    """Yield all texts of a module, and all chains of attributes in it, such as `jvm.org.apache.hudi`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


@pytest.mark.parametrize(
    "source",
    ["jvm.org.apache.hudi.common.X()", "NAME = 'org.apache.hudi.X'", "load(jvm.org.apache.hudi)"],
)
def test_a_class_of_hudi_is_found_in_every_spelling(source: str) -> None:
    assert "org.apache.hudi" in " ".join(names_of_java(ast.parse(source)))
