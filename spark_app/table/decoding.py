"""Decode a batch: turn its events into changes, which are computed once, held, and surveyed on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_app.columns.table_columns import TableColumns
from spark_app.ledger.ledger import Ledger
from spark_app.merge.survey import ChangeSurvey, Survey
from spark_app.merge.unmarked_moves import with_paired_moves, without_moves
from spark_app.positions.source_log import SourceLog
from spark_app.steps.buckets import Buckets
from spark_app.steps.held import Held
from spark_app.steps.steps import steps
from spark_app.table.batch_mode import BatchMode
from spark_app.wire.schemas import Schemas


@dataclass(frozen=True)
class DecodedBatch:
    """The changes of a batch (`decode.change_type`), the columns of their table, and their survey."""

    changes: DataFrame
    columns: TableColumns
    survey: Survey


@dataclass(frozen=True)
class Decoding:
    """Decodes batches of one table.

    log            how the engine of its source gives positions
    keeps_headers  whether the two halves of a key change come marked (`EventSource.keeps_headers`)
    """

    versions: Schemas
    mode: BatchMode
    ledger: Ledger
    log: SourceLog
    keeps_headers: bool

    @contextmanager
    def held(
        self, events: DataFrame, buckets: Buckets | None = None, *, folds_partially: bool = False
    ) -> Iterator[DecodedBatch]:
        """Decode the events and hold the changes until the caller is done with them.

        With `buckets`, each change is in the task that writes its key. With `folds_partially`, a task drops
        the changes that a complete change of the same key certainly follows, except in a batch with a key
        change. Runs one Spark job, and some more if the events bring an unknown schema."""
        held, batch = self._decode(events, buckets, folds_partially=folds_partially)
        is_of_unlearned = batch.survey.of_unknown_schema > 0 and self.versions.learn(events)
        if is_of_unlearned or (folds_partially and batch.survey.has_moved):
            held.release()
            held, batch = self._decode(events, buckets, folds_partially=False)
        try:
            yield batch
        finally:
            held.release()

    def _decode(
        self, events: DataFrame, buckets: Buckets | None, *, folds_partially: bool
    ) -> tuple[Held, DecodedBatch]:
        columns = self.mode.columns(self.versions)
        assert columns is not None, "a batch is decoded once its table's columns are known"
        changes = self.versions.decode(events, columns)
        if not self.log.isolates_moves:
            changes = without_moves(changes)
        elif not self.keeps_headers and not self.versions.names_keys_apart:
            changes = with_paired_moves(changes)
        survey = ChangeSurvey.beside(self.ledger)
        changes = survey.counted(changes)
        if folds_partially:
            changes = steps().partial_fold(changes)
        held = Held.in_cache(changes) if buckets is None else buckets.hold(changes)
        return held, DecodedBatch(held.rows, columns, survey.of_counted(held.rows))
