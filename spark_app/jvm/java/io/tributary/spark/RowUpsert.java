package io.tributary.spark;

import java.io.Serializable;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.avro.Schema;
import org.apache.hudi.AvroConversionUtils;
import org.apache.hudi.HoodieSchemaUtils;
import org.apache.hudi.client.SparkRDDWriteClient;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.TableSchemaResolver;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.index.bucket.BucketIdentifier;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.table.HoodieSparkTable;
import org.apache.spark.Partitioner;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/**
 * Writes rows, one per key, to a Hudi table with simple buckets, in one Spark job. In a copy-on-write table, it writes
 * only the first commit.
 *
 * <p>Hudi's own upsert encodes each row as Avro before it knows the row's file group. It counts the records of each
 * file group and sends them to the task that writes it, which decodes and encodes them again. The driver and each task
 * list the table's files.
 *
 * <p>But a key's bucket is known without looking at the table. So this class sends rows in Spark's form and encodes
 * them once. It lists the files once, or not at all if the table is as this object's last commit left it.
 */
public final class RowUpsert {
    private final String table;
    private TableState latest;
    private TableState writing;

    public RowUpsert(String table) {
        this.table = table;
    }

    /**
     * Returns the Avro schema to write the rows in: their own schema, aligned with that of the table's latest commit.
     *
     * <p>The client's timeline must be the one from before the commit begins.
     */
    public String writerSchema(HoodieTableMetaClient metaClient, Dataset<Row> rows) throws Exception {
        if (latest != null && !latest.isOf(metaClient.getActiveTimeline())) {
            latest = null;
        }
        Tuple2<String, String> name = AvroConversionUtils.getAvroRecordNameAndNamespace(table);
        Schema own = AvroConversionUtils.convertStructTypeToAvroSchema(rows.schema(), name._1(), name._2());
        Option<Schema> stored = latest != null
                ? Option.of(new Schema.Parser().parse(latest.schema))
                : new TableSchemaResolver(metaClient).getTableAvroSchemaFromLatestCommit(false);
        return HoodieSchemaUtils.deduceWriterSchema(own, stored, Option.empty(), new TypedProperties())
                .toString();
    }

    /**
     * Sends the rows to this number of tasks, each row to the task of its file group, and writes them there.
     *
     * <p>The instant is a requested one of the client, and the client's configuration has the rows' schema. The caller
     * has to commit the result. After an exception, Hudi's next commit rolls back what was written.
     */
    public List<HoodieWriteStat> write(
            SparkRDDWriteClient<Object> client,
            HoodieTableMetaClient metaClient,
            String instant,
            Dataset<Row> rows,
            int tasks) {
        FileGroupWriter writer = begin(client, metaClient, instant, rows.schema());
        boolean isPartitioned = metaClient.getTableConfig().isTablePartitioned();
        Partitioner byFileGroup = new ByFileGroup(
                isPartitioned ? tasks : Math.min(tasks, client.getConfig().getBucketIndexNumBuckets()));
        return collect(
                rows,
                found -> found.mapToPair(row -> writer.identified(row.copy()))
                        .repartitionAndSortWithinPartitions(byFileGroup, new FileGroupOrder())
                        .mapPartitions(writer::write));
    }

    /** Does the same as {@link #write}, for rows in the tasks of their {@link Buckets}, grouped by bucket. */
    public List<HoodieWriteStat> writeInBuckets(
            SparkRDDWriteClient<Object> client, HoodieTableMetaClient metaClient, String instant, Dataset<Row> rows) {
        FileGroupWriter writer = begin(client, metaClient, instant, rows.schema());
        return collect(rows, found -> {
            int tasks = found.getNumPartitions();
            return found.mapPartitionsWithIndex(
                    (task, rowsOfTask) -> writer.writeInBuckets(task, tasks, rowsOfTask), true);
        });
    }

    private FileGroupWriter begin(
            SparkRDDWriteClient<Object> client, HoodieTableMetaClient metaClient, String instant, StructType type) {
        HoodieWriteConfig config = client.getConfig();
        HoodieSparkTable<Object> hudi = HoodieSparkTable.create(config, client.getEngineContext(), metaClient);
        HoodieInstant requested =
                metaClient.createNewInstant(HoodieInstant.State.REQUESTED, metaClient.getCommitActionType(), instant);
        hudi.getActiveTimeline().transitionRequestedToInflight(requested, Option.empty());
        boolean isPartitioned = metaClient.getTableConfig().isTablePartitioned();
        Map<String, Map<Integer, FileSlice>> listed = isPartitioned
                ? Map.of() // Each task lists the partitions of its rows.
                : Map.of("", latest != null ? latest.slices : FileGroupWriter.slices(hudi, ""));
        latest = null;
        writing = new TableState(instant, config.getWriteSchema(), listed.get(""));
        return new FileGroupWriter(config, instant, hudi, type, listed);
    }

    private static List<HoodieWriteStat> collect(
            Dataset<Row> rows, Function<JavaRDD<InternalRow>, JavaRDD<HoodieWriteStat>> written) {
        QueryExecution query = rows.queryExecution();
        // With an execution id, Spark sends the session's settings to the tasks.
        return SQLExecution.withNewExecutionId(
                query,
                scala.Option.apply("upsert"),
                () -> written.apply(query.toRdd().toJavaRDD()).collect());
    }

    /**
     * Notes that the last written files are committed. The next commit then does not have to list the table's files.
     */
    public void committed(List<HoodieWriteStat> written) {
        latest = writing.with(written);
    }

    /** The schema and the files of the table after a commit. */
    private static final class TableState {
        final String instant;
        final String schema;
        final Map<Integer, FileSlice> slices;

        /** {@code slices} are by bucket; null for a partitioned table. */
        TableState(String instant, String schema, Map<Integer, FileSlice> slices) {
            this.instant = instant;
            this.schema = schema;
            this.slices = slices;
        }

        /** Returns whether no commit and no compaction has followed, or is about to follow. */
        boolean isOf(HoodieTimeline timeline) {
            return timeline.getWriteTimeline()
                    .lastInstant()
                    .map(last -> last.requestedTime().equals(instant))
                    .orElse(false);
        }

        /** Returns this state plus the written log files; null if there are new base files, too. */
        TableState with(List<HoodieWriteStat> written) {
            for (HoodieWriteStat stat : slices == null ? List.<HoodieWriteStat>of() : written) {
                FileSlice slice = slices.get(BucketIdentifier.bucketIdFromFileId(stat.getFileId()));
                if (slice == null) {
                    return null;
                }
                slice.addLogFile(new HoodieLogFile(new StoragePath(stat.getPath()), stat.getFileSizeInBytes()));
            }
            return this;
        }
    }

    private static final class ByFileGroup extends Partitioner {
        private static final long serialVersionUID = 1;
        private final int tasks;

        ByFileGroup(int tasks) {
            this.tasks = tasks;
        }

        @Override
        public int numPartitions() {
            return tasks;
        }

        @Override
        public int getPartition(Object key) {
            Tuple2<?, ?> fileGroup = (Tuple2<?, ?>) key;
            return Math.floorMod(fileGroup._1().hashCode() + (Integer) fileGroup._2(), tasks);
        }
    }

    private static final class FileGroupOrder implements Comparator<Tuple2<String, Integer>>, Serializable {
        private static final long serialVersionUID = 1;

        @Override
        public int compare(Tuple2<String, Integer> left, Tuple2<String, Integer> right) {
            int buckets = left._2().compareTo(right._2());
            return buckets != 0 ? buckets : left._1().compareTo(right._1());
        }
    }
}
