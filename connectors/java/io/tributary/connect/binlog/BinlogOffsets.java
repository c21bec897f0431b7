package io.tributary.connect.binlog;

import io.tributary.connect.ResumableOffsets;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;

/**
 * Lets Debezium read an event of the binlog of MySQL or MariaDB again that holds a change of a key.
 *
 * <p>An event holds many rows, and the offset counts those that were sent.
 */
public class BinlogOffsets<R extends ConnectRecord<R>> extends ResumableOffsets<R> {
    @Override
    protected void mend(Map<String, Object> offset, boolean insertFollows) {
        if (insertFollows) {
            offset.remove("row");
        }
    }
}
