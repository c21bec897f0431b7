"""Run the query of a derived table over DataFrames."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tributary.contract.derivations import Derivation, Input, PythonQuery, QueryNotUsable

FUNCTION = "derive"


@contextmanager
def result_of(
    spark: SparkSession, derivation: Derivation, frames: Mapping[Input, DataFrame]
) -> Iterator[DataFrame]:
    """Yield the query's result over the inputs. Raises QueryNotUsable, and Spark's AnalysisException."""
    query = derivation.query
    if isinstance(query, PythonQuery):
        yield _call(_function(query, derivation.name), [frames[one] for one in query.inputs], derivation.name)
        return
    with views_of(spark, list(frames.values())) as names:
        yield spark.sql(query.over(dict(zip(frames, names, strict=True))))


@contextmanager
def views_of(spark: SparkSession, frames: list[DataFrame]) -> Iterator[list[str]]:
    """Yield the names of views with the frames' rows, which exist in the context."""
    names = [f"tributary_{uuid.uuid4().hex}" for _ in frames]
    for name, frame in zip(names, frames, strict=True):
        frame.createOrReplaceTempView(name)
    try:
        yield names
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def _function(query: PythonQuery, name: str) -> Callable[..., Any]:
    found: dict[str, Any] = {"__name__": f"tributary_derived_{name}"}
    try:
        exec(compile(query.source, query.path, "exec"), found)
        function: Callable[..., Any] = found[FUNCTION]
    except Exception as error:
        raise QueryNotUsable(
            "the Python file cannot be used",
            where=query.path,
            found=f"{type(error).__name__}: {error}",
            expected=f"a function {FUNCTION} whose parameters are DataFrames and that returns one",
        ) from error
    wanted = len(query.inputs)
    if not callable(function) or len(inspect.signature(function).parameters) != wanted:
        raise QueryNotUsable(
            f"{FUNCTION} is not a function of the inputs",
            where=query.path,
            expected=f"{wanted} parameters, one for each of {', '.join(map(str, query.inputs))}",
        )
    return function


def _call(function: Callable[..., Any], frames: list[DataFrame], name: str) -> DataFrame:
    found = function(*frames)
    if not isinstance(found, DataFrame):
        raise QueryNotUsable(
            f"{FUNCTION} returned no DataFrame", where=f"[derived.{name}]", found=type(found).__name__
        )
    return found
