"""The tables that queries read: where they are, their states, and what has changed between two states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.derive.result_rows import without_hudi
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.instants import instant_of
from spark_app.hudi.table_files import TableFiles
from spark_app.hudi.timeline import Timeline
from spark_app.ledger.ledger import LEDGER_KEY
from tributary.contract.column_names import HUDI_PREFIX
from tributary.contract.derivations import DerivedInput, LakeInput
from tributary.contract.derived import derived_table
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import Ingest, ListTables, RemedyOrText
from tributary.contract.table_name import TableName

_COMMIT = f"{HUDI_PREFIX}commit_time"


class InputMissing(TributaryError):
    """A table or a topic that a query reads and that is not there yet."""


@dataclass(frozen=True)
class InputState:
    """A table as it is at an instant. `timeline` was read then."""

    name: TableName
    hudi: HudiTable
    timeline: Timeline
    instant: str

    def rows(self, spark: SparkSession, instant: str | None = None) -> DataFrame:
        """Return the rows at the instant, or at an earlier one, with Hudi's columns."""
        return self.hudi.read_as_of(instant or self.instant, spark)

    def has_changed_since(self, instant: str) -> bool:
        return any(commit.requested > instant for commit in self.timeline.commits)

    def can_tell_changes_since(self, instant: str) -> bool:
        """Return whether the table's state at the instant still has all its files, and its later commits.

        Cleaning removes files that no state within the table's history needs. A commit that replaces all
        files, such as a rebuild, does not tell which rows it changed."""
        oldest = instant_of(datetime.now(UTC) - self.hudi.policy.history / 2)
        instants = self.timeline.instants
        return (
            instant >= oldest
            and bool(instants)
            and instants[0].requested <= instant
            and not any(one.action == "replacecommit" and one.requested > instant for one in instants)
        )


@dataclass(frozen=True)
class Changes:
    """The changed rows of a table between two states: as they were, and as they are now."""

    before: DataFrame
    after: DataFrame


@dataclass
class InputTables:
    """The tables of the lake below the address `silver`."""

    spark: SparkSession
    lake: Lake
    silver: str
    _found: dict[TableName, HudiTable] = field(default_factory=dict, init=False)

    def state(self, wanted: LakeInput | DerivedInput) -> InputState:
        """Read the state of a table. Raises `InputMissing`."""
        name, hudi = self._find(wanted)
        timeline = hudi.existing_timeline()
        if timeline.last_instant is None:
            raise missing_input(wanted)
        return InputState(name, hudi, timeline, timeline.last_instant)

    def has(self, wanted: LakeInput | DerivedInput) -> bool:
        """Return whether the lake has a table of this name."""
        return any(self.hudi(name).exists() for name in self._names(wanted))

    def hudi(self, name: TableName) -> HudiTable:
        """Return the table with this name, which need not exist."""
        if name not in self._found:
            path = self.lake.names.table_path(name)
            policy = self.lake.policy(name)
            self._found[name] = HudiTable(self.spark, f"{self.silver}/{path}", path.replace("/", "_"), policy)
        return self._found[name]

    def _find(self, wanted: LakeInput | DerivedInput) -> tuple[TableName, HudiTable]:
        names = [name for name in self._names(wanted) if self.hudi(name).exists()]
        if not names:
            raise missing_input(wanted)
        if len(names) > 1:
            raise InputMissing(
                f"several tables have the name {wanted}", expected=" or ".join(map(str, names))
            )
        return names[0], self.hudi(names[0])

    def _names(self, wanted: LakeInput | DerivedInput) -> Iterator[TableName]:
        """Yield the tables that the name can stand for."""
        if isinstance(wanted, DerivedInput):
            yield derived_table(wanted.name)
            return
        match wanted.parts:
            case (name, schema, table):
                yield TableName(name, schema, table)
            case (schema, table):
                yield from (TableName(source.name, schema, table) for source in self.lake.sources)
            case (table,):
                for source in self.lake.sources:
                    yield from (
                        TableName(source.name, schema, table) for schema in self._schemas(source.name)
                    )

    def _schemas(self, source: str) -> Iterator[str]:
        files = TableFiles(self.spark, self.silver)
        if files.exists(source):
            for entry in files.list(source):
                name = self.lake.names.table_of_path(f"{source}/{entry.name}/table")
                if entry.is_folder and name is not None:
                    yield name.schema


def changes_since(spark: SparkSession, state: InputState, instant: str) -> Changes:
    """Return the rows of a table that changed after the instant, without Hudi's columns.

    A row is changed if a later commit wrote it. A row is deleted if it was there and is no more, which only
    has to be looked for if a commit deleted a row."""
    now, was = state.rows(spark), state.rows(spark, instant)
    after = now.where(F.col(_COMMIT) > instant)
    keys = after.select(RECORD_KEY)
    if _deleted_since(state, instant):
        gone = was.select(RECORD_KEY).join(now.select(RECORD_KEY), RECORD_KEY, "left_anti")
        keys = keys.unionByName(gone)
    before = was.join(keys, RECORD_KEY, "left_semi")
    return Changes(without_hudi(before), without_hudi(after))


def _deleted_since(state: InputState, instant: str) -> bool:
    """Return whether a commit after the instant deleted rows, or may have."""
    later = [commit for commit in state.timeline.commits if commit.requested > instant]
    known = {commit.requested for commit in state.timeline.commits if commit.requested <= instant}
    told = list(state.hudi.commits_with(LEDGER_KEY, state.timeline, known))
    return len(told) < len(later) or any(commit.rows_deleted for commit in told)


def missing_input(wanted: LakeInput | DerivedInput) -> InputMissing:
    """Return the error of an input that the lake does not have, with what to do for that table."""
    match wanted:
        case DerivedInput():
            what = "derived table"
            remedy: RemedyOrText = f"If {wanted} has an error, mend that first: the same run derives both."
        case LakeInput():
            what, remedy = "table", ["Check the name.", ListTables(), Ingest(table=str(wanted))]
    return InputMissing(f"the lake has no {what} {wanted} yet, which the query reads", remedy=remedy)
