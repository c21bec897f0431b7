"""Run the query of a derived table over DataFrames."""

from __future__ import annotations

import inspect
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_app.derive.spark_words import words_of
from tributary.contract.derivations import Derivation, Input, PythonQuery, QueryNotUsable
from tributary.contract.errors import TributaryError

FUNCTION = "derive"


@contextmanager
def result_of(
    spark: SparkSession, derivation: Derivation, frames: Mapping[Input, DataFrame]
) -> Iterator[DataFrame]:
    """Yield the query's result over the inputs. Raises QueryNotUsable, and Spark's AnalysisException."""
    query = derivation.query
    if isinstance(query, PythonQuery):
        function = _function(query, derivation.name)
        yield _call(function, [frames[one] for one in query.inputs], query, derivation.name)
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
    except (Exception, SystemExit) as error:
        raise QueryNotUsable(
            "the Python file cannot be used",
            where=_place(query, error),
            found=f"{type(error).__name__}: {error}",
            expected=f"a function {FUNCTION} whose parameters are DataFrames and that returns one",
        ) from error
    function: Callable[..., Any] | None = found.get(FUNCTION)
    if function is None:
        raise QueryNotUsable(
            f"the Python file has no function {FUNCTION}",
            where=query.path,
            expected=f"a function {FUNCTION} whose parameters are DataFrames and that returns one",
        )
    if not _takes(function, len(query.inputs)):
        raise QueryNotUsable(
            f"{FUNCTION} is not a function of the inputs",
            where=query.path,
            expected=f"{len(query.inputs)} parameters, one for each of {', '.join(map(str, query.inputs))}",
        )
    return function


def _takes(function: Any, inputs: int) -> bool:
    """Return whether this is a function that can be called with so many values."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(inputs))
    except (TypeError, ValueError):
        return False
    return True


def _place(query: PythonQuery, error: BaseException) -> str:
    """Return the last line of the query's file that the error passed, or the file alone."""
    of_file = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == query.path]
    line = error.lineno if isinstance(error, SyntaxError) else of_file[-1].lineno if of_file else None
    return query.path if line is None else f"{query.path}, line {line}"


def _call(function: Callable[..., Any], frames: list[DataFrame], query: PythonQuery, name: str) -> DataFrame:
    try:
        found = function(*frames)
    except (TributaryError, Py4JJavaError):
        raise
    except PySparkException as error:
        raise QueryNotUsable(
            "Spark cannot run the query", where=_place(query, error), found=words_of(error)
        ) from error
    except (Exception, SystemExit) as error:
        raise QueryNotUsable(
            f"{FUNCTION} ended with an error",
            where=_place(query, error),
            found=f"{type(error).__name__}: {error}",
        ) from error
    if not isinstance(found, DataFrame):
        raise QueryNotUsable(
            f"{FUNCTION} returned no DataFrame", where=f"[derived.{name}]", found=type(found).__name__
        )
    return found
