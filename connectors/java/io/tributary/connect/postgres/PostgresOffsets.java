package io.tributary.connect.postgres;

import io.tributary.connect.ResumableOffsets;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;

/**
 * Lets Debezium read the rows again that share a position of PostgreSQL's log.
 *
 * <p>All rows of one page of a COPY share a log position, and so do the rows of an INSERT. Debezium 3.7.0 counts the
 * rows that it has sent ({@code lsn_events_processed}), but takes a count of one for "all" ({@code
 * WalPositionLocator.resumeFromLsn}). Without the count and the message type, it reads the transaction again if other
 * rows share the position, and continues behind the row if not.
 */
public class PostgresOffsets<R extends ConnectRecord<R>> extends ResumableOffsets<R> {
    @Override
    protected void mend(Map<String, Object> offset, boolean insertFollows) {
        boolean first = Long.valueOf(1).equals(offset.get("lsn_events_processed"));
        if (!first && !insertFollows) {
            return;
        }
        offset.remove("lsn_events_processed");
        offset.remove("messageType");
        if (insertFollows && offset.get("lsn") instanceof Long lsn) {
            // No event has this position. So Debezium takes up the first transaction that was not sent to its end.
            Object before = lsn - 1;
            offset.put("lsn", before);
            offset.replace("lsn_proc", before);
        }
    }
}
