package io.tributary.connect;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Lets Debezium resume without a gap from the offset of any record, for PostgreSQL, MySQL, MariaDB and SQL Server.
 *
 * <p>Connect stores the offset of the last record that Kafka has. Three of Debezium's offsets skip changes that were
 * never sent:
 *
 * <ul>
 *   <li>PostgreSQL: all rows of one page of a COPY share a log position, and so do the rows of an INSERT. Debezium
 *       3.7.0 counts the rows that it has sent ({@code lsn_events_processed}), but takes a count of one for "all"
 *       ({@code WalPositionLocator.resumeFromLsn}). Without the count and the message type, it reads the transaction
 *       again if other rows share the position, and continues behind the row if not.
 *   <li>A change of a key is sent as three records with the same offset: a delete, a tombstone and an insert. If Kafka
 *       has only the first, Debezium never sends the insert. The first two now let it read the transaction (PostgreSQL),
 *       the event of the binlog, or the update (SQL Server) again. SQL Server records most changes of a key as a delete
 *       and an insert, each with an offset of its own, but one of a single row as an update if its trace flag 8207 is
 *       on, or if the key is not that of a unique index.
 *   <li>Debezium tells that a first snapshot begins by a notification with an empty offset ({@code
 *       SinkNotificationChannel.send}). After a crash, an empty offset is an offset, too: Debezium takes no snapshot, and
 *       the table's earlier rows never come. Nobody needs this notification, so it is dropped.
 * </ul>
 *
 * <p>Reading again only repeats events, which the lake recognizes by their positions. The transform changes the map
 * that {@link SourceRecord#sourceOffset()} returns, because Connect stores the offset of the record that a task
 * returned, and not that of the transformed record ({@code AbstractWorkerSourceTask.sendRecords}).
 */
public class ResumableOffsets<R extends ConnectRecord<R>> implements Transformation<R> {
    private static final String NEW_KEY = "__debezium.newkey";
    private static final String EVENT_SERIAL_NO = "event_serial_no";

    @Override
    public R apply(R record) {
        if (record instanceof SourceRecord source) {
            @SuppressWarnings("unchecked") // Debezium's offsets are of this type; Connect declares a wildcard.
            Map<String, Object> offset = (Map<String, Object>) source.sourceOffset();
            if (offset.isEmpty() && !source.sourcePartition().isEmpty()) {
                return null;
            }
            boolean insertFollows = record.headers().lastWithName(NEW_KEY) != null;
            if (offset.containsKey("lsn")) {
                mendPostgres(offset, insertFollows);
            } else if (insertFollows && offset.containsKey("file")) {
                offset.remove("row");
            } else if (insertFollows && offset.get(EVENT_SERIAL_NO) instanceof Long count) {
                // Debezium skips this many rows of the change's position. An update is two rows of a change table.
                offset.put(EVENT_SERIAL_NO, count - 2);
            }
        }
        return record;
    }

    private static void mendPostgres(Map<String, Object> offset, boolean insertFollows) {
        boolean first = Long.valueOf(1).equals(offset.get("lsn_events_processed"));
        if (!first && !insertFollows) {
            return;
        }
        offset.remove("lsn_events_processed");
        offset.remove("messageType");
        if (insertFollows) {
            // No event has this position. So Debezium takes up the first transaction that was not sent to its end.
            Object before = (long) offset.get("lsn") - 1;
            offset.put("lsn", before);
            offset.replace("lsn_proc", before);
        }
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void configure(Map<String, ?> options) {
        // There are no options.
    }

    @Override
    public void close() {
        // Nothing is held.
    }
}
