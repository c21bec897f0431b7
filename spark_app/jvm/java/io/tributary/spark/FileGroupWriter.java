package io.tributary.spark;

import com.google.common.collect.Iterators;
import com.google.common.collect.PeekingIterator;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.DefaultHoodieRecordPayload;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodiePayloadProps;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieUpsertException;
import org.apache.hudi.index.bucket.BucketIdentifier;
import org.apache.hudi.keygen.BuiltinKeyGenerator;
import org.apache.hudi.keygen.factory.HoodieSparkKeyGeneratorFactory;
import org.apache.hudi.table.HoodieSparkTable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Tuple2;

/** The code that the tasks of {@link RowUpsert} run. It finds each row's file group, and writes a file group's rows. */
final class FileGroupWriter implements Serializable {
    private static final long serialVersionUID = 1;

    private final HoodieWriteConfig config;
    private final String instant;
    private final HoodieSparkTable<Object> table;
    private final StructType type;
    private final Map<String, Map<Integer, FileSlice>> known;
    private final BaseFileWriter baseFiles;
    private final int ordering;
    private final int operation;
    private final UTF8String deleteMarker;
    private transient BuiltinKeyGenerator keys;

    /** {@code known} has, for each partition that has been listed, its file slices by bucket. */
    FileGroupWriter(
            HoodieWriteConfig config,
            String instant,
            HoodieSparkTable<Object> table,
            StructType type,
            Map<String, Map<Integer, FileSlice>> known) {
        this.config = config;
        this.instant = instant;
        this.table = table;
        this.type = type;
        this.known = known;
        this.baseFiles = new BaseFileWriter(config, instant, table, type);
        TypedProperties options = config.getProps();
        this.ordering = type.fieldIndex(options.getString(HoodiePayloadProps.PAYLOAD_ORDERING_FIELD_PROP_KEY));
        String operationColumn = options.getString(DefaultHoodieRecordPayload.DELETE_KEY, null);
        this.operation = operationColumn == null ? -1 : type.fieldIndex(operationColumn);
        this.deleteMarker = UTF8String.fromString(options.getString(DefaultHoodieRecordPayload.DELETE_MARKER, null));
    }

    /** Lists the partition's files. Returns its latest file slices by bucket. */
    static HashMap<Integer, FileSlice> slices(HoodieSparkTable<Object> table, String partition) {
        HashMap<Integer, FileSlice> slices = new HashMap<>();
        table.getSliceView().getLatestFileSlices(partition).forEach(slice -> {
            FileSlice other = slices.put(BucketIdentifier.bucketIdFromFileId(slice.getFileId()), slice);
            if (other != null) {
                throw new HoodieUpsertException(
                        "Two file groups have the same bucket: " + other.getFileId() + " and " + slice.getFileId());
            }
        });
        return slices;
    }

    /** Returns the row with its file group: the path of its partition, and its bucket. */
    Tuple2<Tuple2<String, Integer>, InternalRow> identified(InternalRow row) {
        String key = keys().getRecordKey(row, type).toString();
        int bucket =
                BucketIdentifier.getBucketId(key, config.getBucketIndexHashField(), config.getBucketIndexNumBuckets());
        return new Tuple2<>(new Tuple2<>(keys().getPartitionPath(row, type).toString(), bucket), row);
    }

    /** Writes rows that are grouped by bucket. Throws if another task has the bucket of a row. */
    Iterator<HoodieWriteStat> writeInBuckets(int task, int tasks, Iterator<InternalRow> rows)
            throws IOException, InterruptedException {
        return write(Iterators.transform(rows, row -> {
            Tuple2<Tuple2<String, Integer>, InternalRow> identified = identified(row);
            int bucket = identified._1()._2();
            if (Buckets.task(bucket, tasks) != task) {
                throw new HoodieUpsertException("A row of bucket " + bucket + " has come to task " + task);
            }
            return identified;
        }));
    }

    /** Writes rows that are grouped by file group. */
    Iterator<HoodieWriteStat> write(Iterator<Tuple2<Tuple2<String, Integer>, InternalRow>> rows)
            throws IOException, InterruptedException {
        PeekingIterator<Tuple2<Tuple2<String, Integer>, InternalRow>> ahead = Iterators.peekingIterator(rows);
        Map<String, Map<Integer, FileSlice>> slices = new HashMap<>(known);
        Set<Tuple2<String, Integer>> written = new HashSet<>();
        List<HoodieWriteStat> stats = new ArrayList<>();
        while (ahead.hasNext()) {
            Tuple2<String, Integer> fileGroup = ahead.peek()._1();
            if (!written.add(fileGroup)) {
                throw new HoodieUpsertException("The rows of bucket " + fileGroup._2() + " do not come together");
            }
            String partition = fileGroup._1();
            int bucket = fileGroup._2();
            FileSlice slice = slices.computeIfAbsent(partition, path -> slices(table, path))
                    .get(bucket);
            Iterator<InternalRow> ofFileGroup = rowsOf(fileGroup, ahead);
            stats.addAll(
                    slice == null
                            // If a file group does not have a key, the key needs no delete.
                            ? baseFiles.create(
                                    partition, bucket, keys(), Iterators.filter(ofFileGroup, row -> !deletes(row)))
                            : append(slice, ofFileGroup));
        }
        return stats.iterator();
    }

    private static Iterator<InternalRow> rowsOf(
            Tuple2<String, Integer> fileGroup, PeekingIterator<Tuple2<Tuple2<String, Integer>, InternalRow>> rows) {
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return rows.hasNext() && rows.peek()._1().equals(fileGroup);
            }

            @Override
            public InternalRow next() {
                return rows.next()._2();
            }
        };
    }

    private List<HoodieWriteStat> append(FileSlice slice, Iterator<InternalRow> rows)
            throws IOException, InterruptedException {
        RowAppendHandle handle = new RowAppendHandle(config, instant, table, slice, type);
        try {
            while (rows.hasNext()) {
                InternalRow row = rows.next();
                UTF8String key = keys().getRecordKey(row, type);
                if (deletes(row)) {
                    handle.delete(key, row.getLong(ordering));
                } else {
                    handle.append(key, row);
                }
            }
            handle.flush();
        } finally {
            handle.close();
        }
        return handle.stats();
    }

    private boolean deletes(InternalRow row) {
        return deleteMarker != null && deleteMarker.equals(row.getUTF8String(operation));
    }

    private BuiltinKeyGenerator keys() {
        if (keys == null) {
            keys = (BuiltinKeyGenerator) HoodieSparkKeyGeneratorFactory.createKeyGenerator(config.getProps());
        }
        return keys;
    }
}
