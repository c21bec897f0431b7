package io.tributary.spark;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.JavaConverters;
import scala.reflect.ClassTag$;

/**
 * Reads the records of a topic from bronze, and copies each value once, from the columns that Iceberg reads.
 *
 * <p>Spark would write such columns as rows of bytes (ColumnarToRowExec), from which decoding then takes its values.
 * That is two copies more, each of an event's whole payload and schema.
 */
public final class BronzeEvents implements Serializable {
    private static final long serialVersionUID = 1;
    private static final long MICROSECONDS_OF_MS = 1_000;

    /** In the order of the columns that are made from them. */
    private static final List<String> COLUMNS =
            List.of("k_topic", "k_partition", "k_offset", "k_timestamp", "key", "value", "moved_to", "moved_from");

    private static final int TOPIC = 0;
    private static final int PARTITION = 1;
    private static final int OFFSET = 2;
    private static final int TIMESTAMP = 3;

    private final UTF8String topic;
    private final long[][] ranges;
    private final int[] places = new int[COLUMNS.size()];
    private final DataType[] types = new DataType[COLUMNS.size()];

    private BronzeEvents(String topic, long[][] ranges, List<Attribute> landed) {
        this.topic = UTF8String.fromString(topic);
        this.ranges = ranges;
        Arrays.fill(places, -1);
        for (int place = 0; place < landed.size(); place++) {
            int column = COLUMNS.indexOf(landed.get(place).name());
            places[column] = place;
            types[column] = landed.get(place).dataType();
        }
    }

    /**
     * Returns the landed rows of the topic and of the ranges. A range is a partition, the first offset, and the offset
     * after the last. A filter on {@code landed} spares Iceberg files; here each row is checked again.
     *
     * <p>{@code landed} has the columns {@code k_topic string, k_partition int, k_offset bigint, k_timestamp bigint, key
     * binary, value binary}. The sink adds {@code moved_to binary, moved_from binary} with the first change of a primary
     * key. {@code type} is the one of {@link KafkaEvents#read}, with both headers.
     */
    public static Dataset<Row> read(Dataset<Row> landed, String topic, List<List<Number>> ranges, String type) {
        long[][] wanted = ranges.stream()
                .map(range -> range.stream().mapToLong(Number::longValue).toArray())
                .toArray(long[][]::new);
        List<String> there = Arrays.asList(landed.columns());
        Column[] columns =
                COLUMNS.stream().filter(there::contains).map(Column::new).toArray(Column[]::new);
        SparkPlan scan = columnar(landed.select(columns).queryExecution().executedPlan());
        BronzeEvents events = new BronzeEvents(topic, wanted, JavaConverters.seqAsJavaList(scan.output()));
        JavaRDD<InternalRow> found = rows(scan).filter(events::isWanted).map(events::event);
        return landed.sparkSession().internalCreateDataFrame(found.rdd(), (StructType) DataType.fromJson(type), false);
    }

    /** Returns the part of the plan that reads columns; all of it where Iceberg was told to read rows. */
    private static SparkPlan columnar(SparkPlan plan) {
        SparkPlan part = plan;
        while (!part.supportsColumnar() && part.children().size() == 1) {
            part = part.children().apply(0);
        }
        return part.supportsColumnar() ? part : plan;
    }

    private static JavaRDD<InternalRow> rows(SparkPlan scan) {
        if (!scan.supportsColumnar()) {
            return new JavaRDD<>(scan.execute(), ClassTag$.MODULE$.apply(InternalRow.class));
        }
        return new JavaRDD<>(scan.executeColumnar(), ClassTag$.MODULE$.apply(ColumnarBatch.class))
                .flatMap(ColumnarBatch::rowIterator);
    }

    private boolean isWanted(InternalRow row) {
        if (!row.getUTF8String(places[TOPIC]).equals(topic)) {
            return false;
        }
        long partition = number(row, PARTITION);
        long offset = number(row, OFFSET);
        for (long[] range : ranges) {
            if (range[0] == partition && range[1] <= offset && offset < range[2]) {
                return true;
            }
        }
        return false;
    }

    private InternalRow event(InternalRow row) {
        Object[] values = new Object[COLUMNS.size()];
        values[TOPIC] = topic;
        values[PARTITION] = (int) number(row, PARTITION);
        values[OFFSET] = number(row, OFFSET);
        values[TIMESTAMP] = row.isNullAt(places[TIMESTAMP]) ? null : number(row, TIMESTAMP) * MICROSECONDS_OF_MS;
        for (int column = TIMESTAMP + 1; column < values.length; column++) {
            boolean isThere = places[column] >= 0 && !row.isNullAt(places[column]);
            values[column] = isThere ? row.getBinary(places[column]) : null;
        }
        return new GenericInternalRow(values);
    }

    private long number(InternalRow row, int column) {
        return ((Number) row.get(places[column], types[column])).longValue();
    }
}
