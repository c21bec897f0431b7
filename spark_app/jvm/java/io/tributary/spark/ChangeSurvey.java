package io.tributary.spark;

import com.fasterxml.jackson.annotation.JsonAutoDetect;
import com.fasterxml.jackson.annotation.JsonValue;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.annotation.JsonNaming;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.AccumulatorV2;

/**
 * What changes tell while they pass, without a query of its own: each task reports what it has found of those that it
 * has handed on, once all have been asked for.
 *
 * <p>However often a task runs, after a failure or speculatively, its report counts once.
 */
public final class ChangeSurvey implements Serializable {
    private static final long serialVersionUID = 1;
    private static final UTF8String UNKNOWN_SCHEMA = UTF8String.fromString("unknown_schema");
    private static final JsonMapper JSON = new JsonMapper();

    private final Map<Integer, long[]> applied;
    private final Reports reports = new Reports();

    private ChangeSurvey(Map<Integer, long[]> applied) {
        this.applied = applied;
    }

    /** {@code applied}: by partition the highest commit LSN and LSN, and the latest microsecond, that were applied. */
    public static ChangeSurvey of(SparkSession spark, String applied) throws JsonProcessingException {
        ChangeSurvey survey = new ChangeSurvey(JSON.readValue(applied, new TypeReference<>() {}));
        spark.sparkContext().register(survey.reports);
        return survey;
    }

    /** The same changes, which are counted when they are worked out. */
    public Dataset<Row> counted(Dataset<Row> changes) {
        ChangeColumns columns = new ChangeColumns(changes.schema());
        return InternalRows.ofEachPartition(
                changes, changes.schema(), (number, rows) -> new Counting(number, columns, rows));
    }

    /** Of each task and partition that had changes a {@link Found}, as JSON. */
    public String found() throws JsonProcessingException {
        List<Found> all = new ArrayList<>();
        reports.value().values().forEach(all::addAll);
        return JSON.writeValueAsString(all);
    }

    private final class Counting implements Iterator<InternalRow> {
        private final int number;
        private final ChangeColumns columns;
        private final Iterator<InternalRow> rows;
        private final Map<Integer, Found> byPartition = new HashMap<>();
        private Found latest;
        private boolean isReported;

        Counting(int number, ChangeColumns columns, Iterator<InternalRow> rows) {
            this.number = number;
            this.columns = columns;
            this.rows = rows;
        }

        @Override
        public boolean hasNext() {
            boolean isMore = rows.hasNext();
            if (!isMore && !isReported) {
                byPartition.values().forEach(Found::end);
                reports.add(Map.of(number, List.copyOf(byPartition.values())));
                isReported = true;
            }
            return isMore;
        }

        @Override
        public InternalRow next() {
            InternalRow row = rows.next();
            int partition = columns.partition(row);
            if (latest == null || latest.partition != partition) {
                latest = byPartition.computeIfAbsent(partition, Found::new);
            }
            latest.add(columns, row, applied.get(partition));
            return row;
        }
    }

    /** What a task has found of the changes of a partition. Times are in microseconds. */
    @JsonAutoDetect(fieldVisibility = JsonAutoDetect.Visibility.ANY)
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    @SuppressWarnings("unused") // Jackson reads the fields.
    private static final class Found implements Serializable {
        private static final long serialVersionUID = 1;
        private static final int SHARES = 20;

        final int partition;
        long changes;
        long bad;
        long ofUnknownSchema;
        long inserted;
        long deletes;
        boolean hasUnavailable;
        boolean hasMoved;
        /** The lowest of a good change; null where there is none. */
        Long firstLsn;
        /** Of streamed changes the lowest commit LSN and LSN; null where there is none. */
        long[] firstSequence;
        /** The first of a lower sequence than the applied one, and a later time; null where there is none. */
        Long firstRewound;
        /** Time and LSN of each snapshot, and the offset of the first of its reads. */
        final List<long[]> snapshots = new ArrayList<>();
        /** Offset, commit LSN, LSN and time. */
        final List<Long[]> truncates = new ArrayList<>();
        /** Of streamed changes: offset, commit LSN and LSN. */
        final HighestSince highestSequences = new HighestSince();
        /** Of streamed changes: offset and time. */
        final HighestSince latestTimes = new HighestSince();
        /** Of streamed changes that have a time. */
        int timed;
        /** Their times: the first, the last, and those between by a twentieth. */
        long[] times = new long[16];

        Found(int partition) {
            this.partition = partition;
        }

        void add(ChangeColumns columns, InternalRow row, long[] applied) {
            changes++;
            hasUnavailable |= columns.lacksValues(row);
            hasMoved |= columns.isHalfOfMove(row);
            UTF8String reason = columns.reason(row);
            if (reason != null) {
                bad++;
                ofUnknownSchema += reason.equals(UNKNOWN_SCHEMA) ? 1 : 0;
                return;
            }
            boolean isRead = columns.isRead(row);
            inserted += isRead || columns.isCreate(row) ? 1 : 0;
            deletes += columns.isDelete(row) ? 1 : 0;
            long lsn = columns.lsn(row);
            firstLsn = firstLsn == null ? lsn : Math.min(firstLsn, lsn);
            if (!isRead) {
                addStreamed(columns, row, applied);
            } else if (columns.isSnapshotRead(row)) {
                addSnapshotRead(columns.sourceUs(row), lsn, columns.offset(row));
            }
        }

        private void addStreamed(ChangeColumns columns, InternalRow row, long[] applied) {
            long offset = columns.offset(row);
            Long sourceUs = columns.sourceUs(row);
            long[] sequence = {columns.commitLsn(row), columns.lsn(row)};
            if (firstSequence == null || Arrays.compare(sequence, firstSequence) < 0) {
                firstSequence = sequence;
            }
            highestSequences.add(offset, sequence);
            if (columns.isTruncate(row)) {
                truncates.add(new Long[] {offset, sequence[0], sequence[1], sourceUs});
            }
            if (sourceUs == null) {
                return;
            }
            latestTimes.add(offset, sourceUs);
            if (timed == times.length) {
                times = Arrays.copyOf(times, 2 * timed);
            }
            times[timed++] = sourceUs;
            boolean isRewound =
                    applied != null && Arrays.compare(sequence, 0, 2, applied, 0, 2) < 0 && sourceUs > applied[2];
            if (isRewound && (firstRewound == null || offset < firstRewound)) {
                firstRewound = offset;
            }
        }

        /** Few snapshots, of many reads each. */
        private void addSnapshotRead(Long sourceUs, long lsn, long offset) {
            long time = sourceUs == null ? 0 : sourceUs;
            for (long[] snapshot : snapshots) {
                if (snapshot[0] == time && snapshot[1] == lsn) {
                    snapshot[2] = Math.min(snapshot[2], offset);
                    return;
                }
            }
            snapshots.add(new long[] {time, lsn, offset});
        }

        void end() {
            Arrays.sort(times, 0, timed);
            long[] all = times;
            times = new long[timed == 0 ? 0 : SHARES + 1];
            for (int share = 0; share < times.length; share++) {
                times[share] = all[(int) ((long) share * (timed - 1) / SHARES)];
            }
        }
    }

    /** Of the values at offsets those than which no later one is as high: so the highest since any offset. */
    private static final class HighestSince implements Serializable {
        private static final long serialVersionUID = 1;
        private final TreeMap<Long, long[]> byOffset = new TreeMap<>();

        void add(long offset, long... value) {
            Map.Entry<Long, long[]> since = byOffset.ceilingEntry(offset);
            if (since != null && Arrays.compare(since.getValue(), value) >= 0) {
                return;
            }
            Map.Entry<Long, long[]> before = byOffset.floorEntry(offset);
            while (before != null && Arrays.compare(before.getValue(), value) <= 0) {
                byOffset.remove(before.getKey());
                before = byOffset.floorEntry(offset);
            }
            byOffset.put(offset, value);
        }

        @JsonValue
        Map<Long, long[]> byOffset() {
            return byOffset;
        }
    }

    /** By the number of Spark's partition. */
    private static final class Reports
            extends AccumulatorV2<Map<Integer, Collection<Found>>, Map<Integer, Collection<Found>>> {
        private static final long serialVersionUID = 1;
        /** An executor's heartbeat looks at it while a task adds to it. */
        private final Map<Integer, Collection<Found>> byNumber = new ConcurrentHashMap<>();

        @Override
        public boolean isZero() {
            return byNumber.isEmpty();
        }

        @Override
        public Reports copy() {
            Reports copy = new Reports();
            copy.byNumber.putAll(byNumber);
            return copy;
        }

        @Override
        public void reset() {
            byNumber.clear();
        }

        @Override
        public void add(Map<Integer, Collection<Found>> reports) {
            byNumber.putAll(reports);
        }

        @Override
        public void merge(AccumulatorV2<Map<Integer, Collection<Found>>, Map<Integer, Collection<Found>>> other) {
            byNumber.putAll(other.value());
        }

        @Override
        public Map<Integer, Collection<Found>> value() {
            return byNumber;
        }
    }
}
