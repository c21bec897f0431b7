package io.tributary.spark;

import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.common.model.DefaultHoodieRecordPayload;
import org.apache.hudi.common.util.Option;

/**
 * The payload with which rows are written that need not be combined: it knows its ordering value all the same.
 *
 * <p>Hudi tells a payload its ordering value only where it combines records (HoodieCreateRecordUtils), and writes into
 * delete blocks the one that the payload knows. To see whether a record deletes, it would decode it once more than to
 * write it. What is written is no different from what {@link DefaultHoodieRecordPayload} writes, which is the class
 * that a table names.
 */
public final class OrderedPayload extends DefaultHoodieRecordPayload {
    private static final long serialVersionUID = 1;

    /** Of spark_app/table_columns.py. */
    private static final String ORDERING = "_seq";

    private static final String OPERATION = "_op";

    private final String operation;

    public OrderedPayload(Option<GenericRecord> record) {
        super(record.get(), (Comparable<?>) record.get().get(ORDERING));
        operation = String.valueOf(record.get().get(OPERATION));
    }

    @Override
    public boolean isDeleted(Schema schema, Properties properties) {
        return OPERATION.equals(properties.getProperty(DELETE_KEY))
                ? operation.equals(properties.getProperty(DELETE_MARKER))
                : super.isDeleted(schema, properties);
    }
}
