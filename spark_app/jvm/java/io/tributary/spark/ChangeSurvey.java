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
import java.util.Comparator;
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
 * Collects facts about changes while a query computes them. So it needs no query of its own. Each task reports what it
 * has found once it has handed on its last change.
 *
 * <p>However often a task runs, after a failure or speculatively, its report counts once.
 */
public final class ChangeSurvey implements Serializable {
    private static final long serialVersionUID = 1;
    private static final UTF8String UNKNOWN_SCHEMA = UTF8String.fromString("unknown_schema");
    private static final JsonMapper JSON = new JsonMapper();

    private final Map<Integer, Applied> applied;
    private final Reports reports = new Reports();

    private ChangeSurvey(Map<Integer, Applied> applied) {
        this.applied = applied;
    }

    /** {@code applied}: by partition an {@link Applied}, as JSON. */
    public static ChangeSurvey of(SparkSession spark, String applied) throws JsonProcessingException {
        ChangeSurvey survey = new ChangeSurvey(JSON.readValue(applied, new TypeReference<>() {}));
        spark.sparkContext().register(survey.reports);
        return survey;
    }

    /** Returns the same changes, which are counted when they are computed. */
    public Dataset<Row> counted(Dataset<Row> changes) {
        ChangeColumns columns = new ChangeColumns(changes.schema());
        return InternalRows.ofEachPartition(
                changes, changes.schema(), (number, rows) -> new Counting(number, columns, rows));
    }

    /** Returns a {@link Found} for each task and partition that had changes, as JSON. */
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

    /** The highest position, in base64, and the latest microsecond that were applied. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    private static final class Applied implements Serializable {
        private static final long serialVersionUID = 1;
        public byte[] position;
        public long sourceUs;
    }

    /** The first read of a snapshot. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    @SuppressWarnings("unused") // Jackson reads the fields.
    private static final class Snapshot implements Serializable {
        private static final long serialVersionUID = 1;
        public final long sourceUs;
        public final byte[] logPosition;
        public long offset;

        Snapshot(long sourceUs, byte[] logPosition, long offset) {
            this.sourceUs = sourceUs;
            this.logPosition = logPosition;
            this.offset = offset;
        }
    }

    /** A truncate. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    @SuppressWarnings("unused") // Jackson reads the fields.
    private static final class Truncate implements Serializable {
        private static final long serialVersionUID = 1;
        public final long offset;
        public final byte[] position;
        public final byte[] logPosition;
        public final Long sourceUs;

        Truncate(long offset, byte[] position, byte[] logPosition, Long sourceUs) {
            this.offset = offset;
            this.position = position;
            this.logPosition = logPosition;
            this.sourceUs = sourceUs;
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
        byte[] firstLogPosition;
        /** The lowest of a streamed change; null where there is none. */
        byte[] firstPosition;
        /** The first of a lower position than the applied one, and a later time; null where there is none. */
        Long firstRewound;

        final List<Snapshot> snapshots = new ArrayList<>();
        final List<Truncate> truncates = new ArrayList<>();
        /** Of streamed changes. */
        final HighestSince<byte[]> highestPositions = new HighestSince<>(Positions.IN_ORDER);
        /** Of streamed changes. */
        final HighestSince<Long> latestTimes = new HighestSince<>(Times.IN_ORDER);
        /** Of streamed changes that have a time. */
        int timed;
        /** Their times: the first, the last, and those between by a twentieth. */
        long[] times = new long[16];

        Found(int partition) {
            this.partition = partition;
        }

        void add(ChangeColumns columns, InternalRow row, Applied applied) {
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
            byte[] logPosition = columns.logPosition(row);
            firstLogPosition = lowest(firstLogPosition, logPosition);
            if (!isRead) {
                addStreamed(columns, row, logPosition, applied);
            } else if (columns.isSnapshotRead(row)) {
                addSnapshotRead(columns.sourceUs(row), logPosition, columns.offset(row));
            }
        }

        private static byte[] lowest(byte[] before, byte[] position) {
            return before == null || Arrays.compareUnsigned(position, before) < 0 ? position : before;
        }

        private void addStreamed(ChangeColumns columns, InternalRow row, byte[] logPosition, Applied applied) {
            long offset = columns.offset(row);
            Long sourceUs = columns.sourceUs(row);
            byte[] position = columns.position(row);
            firstPosition = lowest(firstPosition, position);
            highestPositions.add(offset, position);
            if (columns.isTruncate(row)) {
                truncates.add(new Truncate(offset, position, logPosition, sourceUs));
            }
            if (sourceUs == null) {
                return;
            }
            latestTimes.add(offset, sourceUs);
            if (timed == times.length) {
                times = Arrays.copyOf(times, 2 * timed);
            }
            times[timed++] = sourceUs;
            boolean isRewound = applied != null
                    && Arrays.compareUnsigned(position, applied.position) < 0
                    && sourceUs > applied.sourceUs;
            if (isRewound && (firstRewound == null || offset < firstRewound)) {
                firstRewound = offset;
            }
        }

        /** Few snapshots, of many reads each. */
        private void addSnapshotRead(Long sourceUs, byte[] logPosition, long offset) {
            long time = sourceUs == null ? 0 : sourceUs;
            for (Snapshot snapshot : snapshots) {
                if (snapshot.sourceUs == time && Arrays.equals(snapshot.logPosition, logPosition)) {
                    snapshot.offset = Math.min(snapshot.offset, offset);
                    return;
                }
            }
            snapshots.add(new Snapshot(time, logPosition, offset));
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

    private enum Positions implements Comparator<byte[]> {
        IN_ORDER;

        @Override
        public int compare(byte[] one, byte[] other) {
            return Arrays.compareUnsigned(one, other);
        }
    }

    private enum Times implements Comparator<Long> {
        IN_ORDER;

        @Override
        public int compare(Long one, Long other) {
            return one.compareTo(other);
        }
    }

    /**
     * Holds values by offset: those that no later one reaches. So it knows the highest value since any offset.
     */
    private static final class HighestSince<V> implements Serializable {
        private static final long serialVersionUID = 1;
        private final TreeMap<Long, V> byOffset = new TreeMap<>();
        private final Comparator<V> order;

        HighestSince(Comparator<V> order) {
            this.order = order;
        }

        void add(long offset, V value) {
            Map.Entry<Long, V> since = byOffset.ceilingEntry(offset);
            if (since != null && order.compare(since.getValue(), value) >= 0) {
                return;
            }
            Map.Entry<Long, V> before = byOffset.floorEntry(offset);
            while (before != null && order.compare(before.getValue(), value) <= 0) {
                byOffset.remove(before.getKey());
                before = byOffset.floorEntry(offset);
            }
            byOffset.put(offset, value);
        }

        @JsonValue
        Map<Long, V> byOffset() {
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
