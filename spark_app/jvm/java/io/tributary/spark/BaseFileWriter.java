package io.tributary.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.AvroConversionUtils;
import org.apache.hudi.HoodieSparkUtils;
import org.apache.hudi.client.SparkTaskContextSupplier;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.client.model.HoodieInternalRow;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.HoodieAvroIndexedRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieUpsertException;
import org.apache.hudi.index.bucket.BucketIdentifier;
import org.apache.hudi.io.HoodieCreateHandle;
import org.apache.hudi.io.storage.row.HoodieRowCreateHandle;
import org.apache.hudi.keygen.BuiltinKeyGenerator;
import org.apache.hudi.table.HoodieSparkTable;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;

/** Writes the first file of a bucket, which Hudi requires to be a base file. */
final class BaseFileWriter implements Serializable {
    private static final long serialVersionUID = 1;

    private final HoodieWriteConfig config;
    private final String instant;
    private final HoodieSparkTable<Object> table;
    private final StructType type;
    private final StructType withMetaFields;
    private final boolean isWrittenBySpark;

    BaseFileWriter(HoodieWriteConfig config, String instant, HoodieSparkTable<Object> table, StructType type) {
        this.config = config;
        this.instant = instant;
        this.table = table;
        this.type = type;
        this.withMetaFields = new StructType(Stream.of(HoodieSparkUtils.getMetaSchema(), type)
                .flatMap(part -> Arrays.stream(part.fields()))
                .toArray(StructField[]::new));
        this.isWrittenBySpark = hasPlainValues(type) && isOf(new Schema.Parser().parse(config.getWriteSchema()), type);
    }

    /** Writes the rows of one file group. Throws if a row cannot be written. Hudi would leave it out. */
    List<HoodieWriteStat> create(String partition, int bucket, BuiltinKeyGenerator keys, Iterator<InternalRow> rows)
            throws IOException {
        String fileId = FSUtils.createNewFileId(BucketIdentifier.newBucketFileIdPrefix(bucket), 0);
        List<WriteStatus> statuses = isWrittenBySpark
                ? List.of(createBySpark(partition, fileId, keys, rows))
                : createFromAvro(partition, fileId, keys, rows);
        List<HoodieWriteStat> stats = new ArrayList<>();
        for (WriteStatus status : statuses) {
            if (status.hasErrors()) {
                throw new HoodieUpsertException(
                        "Of the rows of the new file group " + fileId + " " + status.getTotalErrorRecords()
                                + " cannot be written",
                        status.getErrors().values().iterator().next());
            }
            stats.add(status.getStat());
        }
        return stats;
    }

    private WriteStatus createBySpark(
            String partition, String fileId, BuiltinKeyGenerator keys, Iterator<InternalRow> rows) throws IOException {
        TaskContext task = TaskContext.get();
        HoodieRowCreateHandle handle = new HoodieRowCreateHandle(
                table,
                config,
                partition,
                fileId,
                instant,
                task.partitionId(),
                task.stageId(),
                task.taskAttemptId(),
                withMetaFields);
        UTF8String path = UTF8String.fromString(partition);
        // The handle fills in the values that it knows.
        UTF8String by = UTF8String.EMPTY_UTF8;
        while (rows.hasNext()) {
            InternalRow row = rows.next();
            handle.write(new HoodieInternalRow(by, by, keys.getRecordKey(row, type), path, by, row, false));
        }
        return handle.close();
    }

    private List<WriteStatus> createFromAvro(
            String partition, String fileId, BuiltinKeyGenerator keys, Iterator<InternalRow> rows) {
        HoodieCreateHandle<?, ?, ?, ?> handle =
                new HoodieCreateHandle<>(config, instant, table, partition, fileId, new SparkTaskContextSupplier());
        Function1<InternalRow, GenericRecord> toAvro =
                AvroConversionUtils.createInternalRowToAvroConverter(type, handle.getWriterSchema(), false);
        while (rows.hasNext()) {
            InternalRow row = rows.next();
            HoodieKey key = new HoodieKey(keys.getRecordKey(row, type).toString(), partition);
            HoodieAvroIndexedRecord record = new HoodieAvroIndexedRecord(key, toAvro.apply(row));
            handle.write(record, handle.getWriterSchema(), config.getProps());
        }
        return handle.close();
    }

    /**
     * Returns whether no column is nested. Hudi merges with a Parquet reader that does not find everything that Spark
     * writes for nested values.
     */
    private static boolean hasPlainValues(StructType type) {
        return Arrays.stream(type.fields())
                .map(StructField::dataType)
                .noneMatch(
                        found -> found instanceof ArrayType || found instanceof MapType || found instanceof StructType);
    }

    /** Returns whether the schema to write equals that of the rows. */
    private static boolean isOf(Schema schema, StructType type) {
        return columns(AvroConversionUtils.convertAvroSchemaToStructType(schema))
                .equals(columns(type));
    }

    private static List<Map.Entry<String, DataType>> columns(StructType type) {
        return Arrays.stream(type.fields())
                .map(field -> Map.entry(field.name(), field.dataType()))
                .collect(Collectors.toList());
    }
}
