package io.tributary.spark;

import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;

/**
 * Reads from the metadata of bronze's files which topics and offsets they contain. A query of the rows takes a Spark
 * job, and the more time the longer the history is.
 */
public final class BronzeMetadata {
    private static final JsonMapper JSON = new JsonMapper();

    private final Types.NestedField topic;
    private final Types.NestedField partition;
    private final Types.NestedField offset;
    private final Map<String, Map<Long, long[]>> byTopic = new HashMap<>();
    private final Set<String> untold = new HashSet<>();

    private BronzeMetadata(Table table) {
        topic = table.schema().findField("k_topic");
        partition = table.schema().findField("k_partition");
        offset = table.schema().findField("k_offset");
    }

    /**
     * Returns the lowest and the highest offset of each partition of the topics as JSON,
     * {@code {"topic": {"0": [17, 20]}}}. A topic is left out where some file's metadata does not say: a file with rows
     * of several topics or partitions, with deleted rows, or without statistics.
     */
    public static String extents(SparkSession spark, String name, List<String> topics)
            throws ParseException, NoSuchTableException, IOException {
        Table table = load(spark, name);
        BronzeMetadata metadata = new BronzeMetadata(table);
        topics.forEach(topic -> metadata.byTopic.put(topic, new HashMap<>()));
        Expression ofTopics = Expressions.in(metadata.topic.name(), topics);
        try (CloseableIterable<FileScanTask> files =
                table.newScan().filter(ofTopics).includeColumnStats().planFiles()) {
            files.forEach(metadata::add);
        }
        metadata.byTopic.keySet().removeAll(metadata.untold);
        return JSON.writeValueAsString(metadata.byTopic);
    }

    /**
     * Returns the topics that bronze has rows of as JSON; null where some file's metadata does not say: a file with
     * rows of several topics, or with deleted rows.
     */
    public static String topics(SparkSession spark, String name)
            throws ParseException, NoSuchTableException, IOException {
        Table table = load(spark, name);
        BronzeMetadata metadata = new BronzeMetadata(table);
        Set<String> topics = new HashSet<>();
        try (CloseableIterable<FileScanTask> files = table.newScan().planFiles()) {
            files.forEach(task -> topics.add(task.deletes().isEmpty() ? metadata.topicOf(task) : null));
        }
        return JSON.writeValueAsString(topics.contains(null) ? null : topics);
    }

    private static Table load(SparkSession spark, String name) throws ParseException, NoSuchTableException {
        Table table = Spark3Util.loadIcebergTable(spark, name);
        table.refresh();
        return table;
    }

    private void add(FileScanTask task) {
        DataFile file = task.file();
        String ofFile = topicOf(task);
        Long first = bound(file.lowerBounds(), partition);
        Long last = bound(file.upperBounds(), partition);
        Long lowest = bound(file.lowerBounds(), offset);
        Long highest = bound(file.upperBounds(), offset);
        if (ofFile == null) {
            untold.addAll(byTopic.keySet());
        } else if (!task.deletes().isEmpty() || first == null || !first.equals(last) || lowest == null) {
            untold.add(ofFile);
        } else {
            byTopic.get(ofFile).merge(first, new long[] {lowest, highest}, BronzeMetadata::around);
        }
    }

    private static long[] around(long[] one, long[] other) {
        return new long[] {Math.min(one[0], other[0]), Math.max(one[1], other[1])};
    }

    /** Returns the topic of all rows of the file; null where the table's layout does not say. */
    private String topicOf(FileScanTask task) {
        List<PartitionField> fields = task.spec().fields();
        for (int place = 0; place < fields.size(); place++) {
            PartitionField field = fields.get(place);
            if (field.sourceId() == topic.fieldId() && field.transform().isIdentity()) {
                return task.file().partition().get(place, String.class);
            }
        }
        return null;
    }

    /** Returns the bound of a column of whole numbers; null where the file's metadata has none. */
    private static Long bound(Map<Integer, ByteBuffer> bounds, Types.NestedField field) {
        ByteBuffer bound = bounds == null ? null : bounds.get(field.fieldId());
        return bound == null ? null : ((Number) Conversions.fromByteBuffer(field.type(), bound)).longValue();
    }
}
