package io.tributary.connect.sqlserver;

import io.tributary.connect.ResumableOffsets;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;

/**
 * Lets Debezium read an update of SQL Server again that changes a key.
 *
 * <p>SQL Server records most changes of a key as a delete and an insert, each with an offset of its own, but one of a
 * single row as an update if its trace flag 8207 is on, or if the key is not that of a unique index.
 */
public class SqlServerOffsets<R extends ConnectRecord<R>> extends ResumableOffsets<R> {
    private static final String EVENT_SERIAL_NO = "event_serial_no";

    @Override
    protected void mend(Map<String, Object> offset, boolean insertFollows) {
        if (insertFollows && offset.get(EVENT_SERIAL_NO) instanceof Long count) {
            // Debezium skips this many rows of the change's position. An update is two rows of a change table.
            offset.put(EVENT_SERIAL_NO, count - 2);
        }
    }
}
