"""Bring a table that is derived from tables to what its query gives over their current rows.

If the query's form allows it, only those rows are computed that a change since the last commit can have
touched. Otherwise all rows are computed. In both cases only what differs from the stored rows is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.derive.derived_table import DerivedTable
from spark_app.derive.input_tables import Changes, InputState, InputTables, changes_since
from spark_app.derive.outputs import Outputs
from spark_app.derive.queries import result_of, views_of
from spark_app.derive.record import Record
from spark_app.derive.result_rows import (
    check_keys,
    check_result,
    columns_of,
    difference,
    replacement,
    table_rows,
    without_hudi,
)
from spark_app.derive.touched import AllKeys, TouchedKeys, touched_keys
from spark_app.reports import Committed
from tributary.contract.derivations import Input, SqlQuery, TableDerivation

_BROADCAST_KEYS = 200_000
"""Up to this many touched keys are sent to all tasks, which then read the inputs without a shuffle."""


@dataclass
class FromTables:
    """A table derived from tables.

    seen  the instants up to which the inputs' changes are in the table, also those that changed no row
    """

    spark: SparkSession
    derivation: TableDerivation
    table: DerivedTable
    inputs: InputTables
    outputs: Outputs
    seen: Mapping[str, str] = field(default_factory=dict)

    def recover(self) -> None:
        self.table.recover()
        record = self.table.record
        self.seen = record.inputs if record is not None and record.digest == self.derivation.digest else {}

    def advance(self) -> Committed | None:
        """Bring the table up to date. Return its commit, or None if no row has changed.

        Raises TributaryError, and Spark's AnalysisException for a query that does not fit its inputs."""
        states: dict[Input, InputState] = {one: self.inputs.state(one) for one in self.derivation.tables}
        changed = [state for state in states.values() if self._has_changed(state)]
        if self.seen and not changed:
            return None
        instants = {str(state.name): state.instant for state in states.values()}
        record = Record(self.derivation.digest, self.table.next_number, inputs=instants)
        committed: Committed | AllKeys | None = AllKeys("the inputs do not tell what has changed")
        if self._can_tell(states):
            committed = self._advance_touched(states, changed, record)
        if isinstance(committed, AllKeys):
            committed = self._advance_all(states, record)
        self.seen = instants
        if committed is not None:
            self.outputs.progress.write(committed)
        return committed

    def _has_changed(self, state: InputState) -> bool:
        instant = self.seen.get(str(state.name))
        return instant is None or state.has_changed_since(instant)

    def _can_tell(self, states: Mapping[Input, InputState]) -> bool:
        """Return whether the inputs can tell what has changed since the table's last state."""
        names = {str(state.name) for state in states.values()}
        return self.seen.keys() == names and all(
            state.can_tell_changes_since(self.seen[str(state.name)]) for state in states.values()
        )

    def _advance_all(self, states: Mapping[Input, InputState], record: Record) -> Committed | None:
        """Compute all rows."""
        frames = {one: without_hudi(state.rows(self.spark)) for one, state in states.items()}
        with result_of(self.spark, self.derivation, frames) as result:
            check_result(result, self.derivation.key)
            rows = table_rows(result, self.derivation.key, record.number).persist()
            try:
                check_keys(rows, self.derivation.key)
                stored = self.table.columns()
                is_same = stored is not None and stored.is_same(columns_of(rows))
                changes = told = rows
                if is_same:
                    changes = told = difference(rows, self.table.hudi.read(), record.number)
                elif stored is not None:
                    told = replacement(rows, self.table.hudi.read(), record.number)
                self.outputs.write_changes(told)
                self.outputs.write_all(rows)
                return self.table.become(rows, record, self._topic, 0, changes if is_same else None)
            finally:
                rows.unpersist()

    def _advance_touched(
        self,
        states: Mapping[Input, InputState],
        changed: list[InputState],
        record: Record,
    ) -> Committed | AllKeys | None:
        """Compute only the rows that the changes of the inputs can touch."""
        query = self.derivation.query
        if not isinstance(query, SqlQuery):
            return AllKeys("it is a Python function")
        if self.outputs.has_files:
            return AllKeys("the files hold all rows")
        form = touched_keys(query.text, self.derivation.key)
        if isinstance(form, AllKeys):
            return form
        with ExitStack() as until_done:
            try:
                keys = self._touched(form, query, states, changed, until_done)
            except AnalysisException as error:
                return AllKeys(f"Spark cannot read the keys: {error}")
            frames = {one: without_hudi(state.rows(self.spark)) for one, state in states.items()}
            result = until_done.enter_context(result_of(self.spark, self.derivation, frames))
            check_result(result, self.derivation.key)
            stored = self.table.columns()
            if stored is None or not stored.is_same(columns_of(table_rows(result, self.derivation.key, 0))):
                return AllKeys("the columns are others than before")
            keys = keys.persist()
            until_done.callback(keys.unpersist)
            count = keys.count()
            if count == 0:
                return None
            wanted = F.broadcast(keys) if count <= _BROADCAST_KEYS else keys
            is_wanted = [result[name].eqNullSafe(wanted[f"touched_{name}"]) for name in self.derivation.key]
            touched = result.join(wanted, is_wanted, "left_semi")
            rows = table_rows(touched, self.derivation.key, record.number).persist()
            until_done.callback(rows.unpersist)
            check_keys(rows, self.derivation.key)
            touched_rows = table_rows(_as_key(keys, self.derivation.key), self.derivation.key, 0)
            before = self.table.hudi.read().join(
                F.broadcast(touched_rows.select(RECORD_KEY)), RECORD_KEY, "left_semi"
            )
            changes = difference(rows, before, record.number)
            self.outputs.write_changes(changes)
            return self.table.write(changes, record, self._topic, count)

    def _touched(
        self,
        form: TouchedKeys,
        query: SqlQuery,
        states: Mapping[Input, InputState],
        changed: list[InputState],
        until_done: ExitStack,
    ) -> DataFrame:
        """Return the keys of the rows that the changes can touch."""
        changes = {
            state.name: changes_since(self.spark, state, self.seen[str(state.name)]) for state in changed
        }
        places = [states[reference.input] for reference in query.references]
        now = self._views([without_hudi(state.rows(self.spark)) for state in places], until_done)
        was = self._views(
            [without_hudi(state.rows(self.spark, self.seen[str(state.name)])) for state in places], until_done
        )
        found: list[DataFrame] = []
        for number, state in enumerate(places):
            if state.name not in changes:
                continue
            of_table: Changes = changes[state.name]
            for views, rows in ((now, of_table.after), (was, of_table.before)):
                (view,) = self._views([rows], until_done)
                found.append(
                    self.spark.sql(form.query(number, [*views[:number], view, *views[number + 1 :]]))
                )
        union = found[0]
        for other in found[1:]:
            union = union.unionByName(other)
        return union.distinct().select(
            *(F.col(name).alias(f"touched_{name}") for name in self.derivation.key)
        )

    def _views(self, frames: list[DataFrame], until_done: ExitStack) -> list[str]:
        return until_done.enter_context(views_of(self.spark, frames))

    @property
    def _topic(self) -> str:
        """The text that stands for a topic in the ledger."""
        return f"derived from {', '.join(map(str, self.derivation.inputs))}"


def _as_key(keys: DataFrame, key: tuple[str, ...]) -> DataFrame:
    return keys.select(*(F.col(f"touched_{name}").alias(name) for name in key))
