package io.tributary.connect.binlog;

import io.tributary.connect.TransformWithoutOptions;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;

/**
 * Turns a zero timestamp (0000-00-00 00:00:00) of a column with NULL into NULL, as a snapshot has it.
 *
 * <p>The log has the second 0 for it, which Debezium's connector for MariaDB reads as the first second of 1970 before
 * its version 3.6 (RowDeserializers.deserializeTimestampV2). No other timestamp is that second: the type begins one
 * second later.
 */
public class ZeroTimestamps<R extends ConnectRecord<R>> extends TransformWithoutOptions<R> {
    private static final String TIMESTAMP = "io.debezium.time.ZonedTimestamp";
    private static final String ZERO = "1970-01-01T00:00:00";
    private static final int MOST_KEPT = 1_000;

    // Debezium uses the same schema object for all events of a table, until the table's definition changes.
    private final Map<Schema, List<Field>> timestamps = Collections.synchronizedMap(new IdentityHashMap<>());

    @Override
    public R apply(R record) {
        if (record.value() instanceof Struct envelope) {
            for (String part : List.of("before", "after")) {
                if (envelope.schema().field(part) != null && envelope.get(part) instanceof Struct row) {
                    mend(row);
                }
            }
        }
        return record;
    }

    private void mend(Struct row) {
        for (Field field : timestampsOf(row.schema())) {
            if (row.getWithoutDefault(field.name()) instanceof String text && text.startsWith(ZERO)) {
                row.put(field, null);
            }
        }
    }

    private List<Field> timestampsOf(Schema row) {
        if (timestamps.size() >= MOST_KEPT) {
            timestamps.clear();
        }
        return timestamps.computeIfAbsent(
                row,
                schema -> schema.fields().stream()
                        .filter(field -> field.schema().isOptional()
                                && TIMESTAMP.equals(field.schema().name()))
                        .toList());
    }

    @Override
    public void close() {
        timestamps.clear();
    }
}
