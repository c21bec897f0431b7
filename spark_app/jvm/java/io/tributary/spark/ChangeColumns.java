package io.tributary.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** What decode.change_type in Python says of a change. */
final class ChangeColumns implements Serializable {
    private static final long serialVersionUID = 1;
    private static final UTF8String CREATE = UTF8String.fromString("c");
    private static final UTF8String DELETE = UTF8String.fromString("d");
    private static final UTF8String READ = UTF8String.fromString("r");
    private static final UTF8String TRUNCATE = UTF8String.fromString("t");
    private static final UTF8String INCREMENTAL = UTF8String.fromString("incremental");

    private final int partition;
    private final int offset;
    private final int op;
    private final int key;
    private final int movedTo;
    private final int movedFrom;
    private final int sourceTs;
    private final int position;
    private final int logPosition;
    private final int snapshot;
    private final int unavailable;
    private final int reason;

    ChangeColumns(StructType type) {
        partition = type.fieldIndex("partition");
        offset = type.fieldIndex("offset");
        op = type.fieldIndex("op");
        key = type.fieldIndex("key");
        movedTo = type.fieldIndex("moved_to");
        movedFrom = type.fieldIndex("moved_from");
        sourceTs = type.fieldIndex("source_ts");
        position = type.fieldIndex("position");
        logPosition = type.fieldIndex("log_position");
        snapshot = type.fieldIndex("snapshot");
        unavailable = type.fieldIndex("unavailable");
        reason = type.fieldIndex("reason");
    }

    int partition(InternalRow row) {
        return row.getInt(partition);
    }

    long offset(InternalRow row) {
        return row.getLong(offset);
    }

    /** Null for a truncate. */
    UTF8String key(InternalRow row) {
        return row.isNullAt(key) ? null : row.getUTF8String(key);
    }

    /** In microseconds; null where the source has told none. */
    Long sourceUs(InternalRow row) {
        return row.isNullAt(sourceTs) ? null : (Long) row.getLong(sourceTs);
    }

    /** Returns the place in the order of the stream. {@code Arrays.compareUnsigned} compares two of them. */
    byte[] position(InternalRow row) {
        return row.getBinary(position);
    }

    /** Returns the place in the log. {@code Arrays.compareUnsigned} compares two of them. */
    byte[] logPosition(InternalRow row) {
        return row.getBinary(logPosition);
    }

    /** Null for a good change. */
    UTF8String reason(InternalRow row) {
        return row.isNullAt(reason) ? null : row.getUTF8String(reason);
    }

    boolean isCreate(InternalRow row) {
        return row.getUTF8String(op).equals(CREATE);
    }

    boolean isDelete(InternalRow row) {
        return row.getUTF8String(op).equals(DELETE);
    }

    boolean isTruncate(InternalRow row) {
        return row.getUTF8String(op).equals(TRUNCATE);
    }

    boolean isRead(InternalRow row) {
        return row.getUTF8String(op).equals(READ);
    }

    /** A read of an incremental snapshot has a place among the streamed changes, as they have. */
    boolean isSnapshotRead(InternalRow row) {
        return isRead(row)
                && (row.isNullAt(snapshot) || !row.getUTF8String(snapshot).equals(INCREMENTAL));
    }

    boolean isHalfOfMove(InternalRow row) {
        return !row.isNullAt(movedTo) || !row.isNullAt(movedFrom);
    }

    boolean lacksValues(InternalRow row) {
        return !row.isNullAt(unavailable) && row.getArray(unavailable).numElements() > 0;
    }
}
