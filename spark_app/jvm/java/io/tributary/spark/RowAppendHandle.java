package io.tributary.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.client.SparkTaskContextSupplier;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.common.data.HoodieData;
import org.apache.hudi.common.model.BaseFile;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodieAvroIndexedRecord;
import org.apache.hudi.common.model.HoodieDeltaWriteStat;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.IOType;
import org.apache.hudi.common.table.log.AppendResult;
import org.apache.hudi.common.table.log.HoodieLogFormat;
import org.apache.hudi.common.table.log.block.HoodieAvroDataBlock;
import org.apache.hudi.common.table.log.block.HoodieDeleteBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock.HeaderMetadataType;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.io.HoodieWriteHandle;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.table.HoodieSparkTable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Appends rows to the log of a known file slice, in a table of version 6.
 *
 * <p>Hudi's own handle (HoodieAppendHandle) searches for the file slice: each task lists the table's files.
 */
final class RowAppendHandle
        extends HoodieWriteHandle<
                Object, HoodieData<HoodieRecord<Object>>, HoodieData<HoodieKey>, HoodieData<WriteStatus>> {
    private static final long NO_POSITION = -1;

    private final FileSlice slice;
    private final HoodieLogFormat.Writer writer;
    private final Map<String, HoodieDeltaWriteStat> stats = new LinkedHashMap<>();
    private final RowEncoder encoder;
    private final UTF8String commitTime;
    private final UTF8String partition;
    private final UTF8String file;

    @SuppressWarnings("rawtypes") // HoodieAvroDataBlock takes raw records.
    private final List<HoodieRecord> rows = new ArrayList<>();

    private final List<Pair<DeleteRecord, Long>> deletes = new ArrayList<>();
    private long appended;
    private long bytes;

    RowAppendHandle(
            HoodieWriteConfig config,
            String instant,
            HoodieSparkTable<Object> table,
            FileSlice slice,
            StructType type) {
        super(config, instant, slice.getPartitionPath(), slice.getFileId(), table, new SparkTaskContextSupplier());
        this.slice = slice;
        this.writer = createLogWriter(slice.getBaseInstantTime(), Option.of(slice));
        this.encoder = new RowEncoder(type, writeSchemaWithMetaFields);
        this.commitTime = UTF8String.fromString(instant);
        this.partition = UTF8String.fromString(partitionPath);
        this.file = UTF8String.fromString(fileId);
    }

    void append(UTF8String key, InternalRow row) throws IOException, InterruptedException {
        String number = HoodieRecord.generateSequenceId(instantTime, getPartitionId(), appended++);
        byte[] avro = encoder.encoded(row, commitTime, UTF8String.fromString(number), key, partition, file);
        rows.add(new EncodedRow(avro));
        flushIfLarge(avro.length);
    }

    void delete(UTF8String key, long ordering) throws IOException, InterruptedException {
        deletes.add(Pair.of(DeleteRecord.create(key.toString(), partitionPath, ordering), NO_POSITION));
        flushIfLarge(key.numBytes());
    }

    private void flushIfLarge(int moreBytes) throws IOException, InterruptedException {
        bytes += moreBytes;
        if (bytes >= config.getLogFileDataBlockMaxSize()) {
            flush();
            bytes = 0;
        }
    }

    /** Writes the rows and deletes that are not written yet. */
    void flush() throws IOException, InterruptedException {
        Map<HeaderMetadataType, String> header = Map.of(
                HeaderMetadataType.INSTANT_TIME,
                instantTime,
                HeaderMetadataType.SCHEMA,
                writeSchemaWithMetaFields.toString());
        List<HoodieLogBlock> blocks = new ArrayList<>();
        if (!rows.isEmpty()) {
            blocks.add(new HoodieAvroDataBlock(rows, header, HoodieRecord.RECORD_KEY_METADATA_FIELD));
        }
        if (!deletes.isEmpty()) {
            blocks.add(new HoodieDeleteBlock(deletes, header));
        }
        if (!blocks.isEmpty()) {
            AppendResult result = writer.appendBlocks(blocks);
            count(stats.computeIfAbsent(result.logFile().getFileName(), written -> statOf(result)), result);
        }
        rows.clear();
        deletes.clear();
    }

    private HoodieDeltaWriteStat statOf(AppendResult result) {
        HoodieDeltaWriteStat stat = new HoodieDeltaWriteStat();
        String logFile = result.logFile().getFileName();
        stat.setPartitionPath(partitionPath);
        stat.setFileId(fileId);
        stat.setPrevCommit(slice.getBaseInstantTime());
        stat.setBaseFile(slice.getBaseFile().map(BaseFile::getFileName).orElse(""));
        List<String> files =
                slice.getLogFiles().map(HoodieLogFile::getFileName).collect(Collectors.toCollection(ArrayList::new));
        files.add(logFile);
        stat.setLogFiles(files);
        stat.setPath(partitionPath.isEmpty() ? logFile : new StoragePath(partitionPath, logFile).toString());
        stat.setLogOffset(result.offset());
        stat.setLogVersion(result.logFile().getLogVersion());
        return stat;
    }

    private void count(HoodieDeltaWriteStat stat, AppendResult result) {
        stat.setNumWrites(stat.getNumWrites() + rows.size());
        stat.setNumUpdateWrites(stat.getNumUpdateWrites() + rows.size());
        stat.setNumDeletes(stat.getNumDeletes() + deletes.size());
        stat.setTotalWriteBytes(stat.getTotalWriteBytes() + result.size());
        stat.setFileSizeInBytes(result.offset() + result.size());
    }

    List<HoodieWriteStat> stats() {
        return List.copyOf(stats.values());
    }

    @Override
    public List<WriteStatus> close() {
        try {
            writer.close();
        } catch (IOException error) {
            throw new HoodieIOException("Could not close the log file of " + fileId, error);
        }
        return List.of();
    }

    @Override
    public IOType getIOType() {
        return IOType.APPEND;
    }

    /** A row, encoded as a data block holds it. */
    private static final class EncodedRow extends HoodieAvroIndexedRecord {
        private static final long serialVersionUID = 1;
        private final byte[] avro;

        EncodedRow(byte[] avro) {
            super((IndexedRecord) null);
            this.avro = avro;
        }

        @Override
        public ByteArrayOutputStream getAvroBytes(Schema schema, Properties properties) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(avro.length);
            bytes.writeBytes(avro);
            return bytes;
        }
    }
}
