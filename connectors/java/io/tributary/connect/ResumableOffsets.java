package io.tributary.connect;

import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Lets Debezium resume without a gap from the offset of any record. Each engine has a class of its own.
 *
 * <p>Connect stores the offset of the last record that Kafka has. Some of Debezium's offsets skip changes that were
 * never sent:
 *
 * <ul>
 *   <li>A change of a key is sent as three records with the same offset: a delete, a tombstone and an insert. If Kafka
 *       has only the first, Debezium never sends the insert. The first two now let it read the change again.
 *   <li>Debezium tells that a first snapshot begins by a notification with an empty offset ({@code
 *       SinkNotificationChannel.send}). After a crash, an empty offset is an offset, too: Debezium takes no snapshot, and
 *       the table's earlier rows never come. Nobody needs this notification, so it is dropped.
 * </ul>
 *
 * <p>Reading again only repeats events, which the lake recognizes by their positions. The transform changes the map
 * that {@link SourceRecord#sourceOffset()} returns, because Connect stores the offset of the record that a task
 * returned, and not that of the transformed record ({@code AbstractWorkerSourceTask.sendRecords}).
 */
public abstract class ResumableOffsets<R extends ConnectRecord<R>> extends TransformWithoutOptions<R> {
    private static final String NEW_KEY = "__debezium.newkey";

    @Override
    public R apply(R record) {
        if (record instanceof SourceRecord source) {
            @SuppressWarnings("unchecked") // Debezium's offsets are of this type; Connect declares a wildcard.
            Map<String, Object> offset = (Map<String, Object>) source.sourceOffset();
            if (offset.isEmpty() && !source.sourcePartition().isEmpty()) {
                return null;
            }
            mend(offset, record.headers().lastWithName(NEW_KEY) != null);
        }
        return record;
    }

    /**
     * Changes a record's offset so that Debezium skips nothing if it resumes there.
     *
     * @param insertFollows the record is a delete or a tombstone of a change of a key, whose insert is sent after it
     */
    protected abstract void mend(Map<String, Object> offset, boolean insertFollows);
}
