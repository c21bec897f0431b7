package io.tributary.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.ExecutorCacheTaskLocation;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.kafka010.JsonUtils;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.KafkaOffsetRangeCalculator;
import org.apache.spark.sql.kafka010.KafkaSourceRDD;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.reflect.ClassTag$;

/**
 * Reads the records of a topic with Spark's own Kafka reader, but without the data source around it.
 *
 * <p>For each batch, the data source asks its own admin client for the topic's partitions. It creates Java objects for
 * each record, which Spark then converts back to its internal form (KafkaRelation#buildScan, RowDataSourceScanExec).
 */
public final class KafkaEvents implements Serializable {
    private static final long serialVersionUID = 1;

    /** The data source's own value: Spark's spark.network.timeout. */
    private static final long POLL_TIMEOUT_MS = 120_000;

    private static final long MICROSECONDS_OF_MS = 1_000;
    private static final JsonMapper JSON = new JsonMapper();

    private final UTF8String topic;
    private final String[] headers;

    private KafkaEvents(String topic, String[] headers) {
        this.topic = UTF8String.fromString(topic);
        this.headers = headers;
    }

    /**
     * Returns records as rows of the {@code type}, which is given as Spark's JSON.
     *
     * <p>The type is {@code topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary},
     * and a {@code binary} for each of the headers. That is the last header of the name, null if a record has none.
     *
     * <p>{@code from} (included) and {@code until} (excluded) are offsets of one topic, as Spark writes them: {@code
     * {"topic": {"0": 17}}}. At least {@code tasks} tasks read the records, if there are that many records. A task
     * fails if the topic no longer holds an offset. {@code consumer} is a JSON object with the consumer's properties.
     */
    public static Dataset<Row> read(
            SparkSession spark,
            String consumer,
            String from,
            String until,
            int tasks,
            List<String> headers,
            String type)
            throws JsonProcessingException {
        Map<TopicPartition, Object> ends = JavaConverters.mapAsJavaMap(JsonUtils.partitionOffsets(until));
        List<KafkaOffsetRange> ranges = new ArrayList<>();
        JavaConverters.mapAsJavaMap(JsonUtils.partitionOffsets(from))
                .forEach((partition, first) -> ranges.add(
                        new KafkaOffsetRange(partition, (Long) first, (Long) ends.get(partition), Option.empty())));
        Seq<KafkaOffsetRange> ofTasks = new KafkaOffsetRangeCalculator(Option.apply(tasks))
                .getRanges(Expressions.seq(ranges), Expressions.seq(executors()));
        Map<String, Object> options = JSON.readValue(consumer, new TypeReference<>() {});
        RDD<ConsumerRecord<byte[], byte[]>> records =
                new KafkaSourceRDD(spark.sparkContext(), options, ofTasks, POLL_TIMEOUT_MS, true);
        KafkaEvents events = new KafkaEvents(ranges.get(0).topic(), headers.toArray(new String[0]));
        RDD<InternalRow> rows = new JavaRDD<>(records, ClassTag$.MODULE$.apply(ConsumerRecord.class))
                .map(events::row)
                .rdd();
        return spark.internalCreateDataFrame(rows, (StructType) DataType.fromJson(type), false);
    }

    private InternalRow row(ConsumerRecord<byte[], byte[]> record) {
        Object[] values = new Object[6 + headers.length];
        values[0] = topic;
        values[1] = record.partition();
        values[2] = record.offset();
        values[3] = record.timestamp() * MICROSECONDS_OF_MS;
        values[4] = record.key();
        values[5] = record.value();
        for (Header header : record.headers()) {
            for (int n = 0; n < headers.length; n++) {
                if (headers[n].equals(header.key())) {
                    values[6 + n] = header.value();
                }
            }
        }
        return new GenericInternalRow(values);
    }

    /**
     * Returns the executors in a fixed order. So a partition always goes to the same executor, whose consumer
     * continues.
     */
    private static List<String> executors() {
        BlockManager own = SparkEnv.get().blockManager();
        List<String> places = new ArrayList<>();
        for (BlockManagerId peer : JavaConverters.seqAsJavaList(own.master().getPeers(own.blockManagerId()))) {
            places.add(new ExecutorCacheTaskLocation(peer.host(), peer.executorId()).toString());
        }
        places.sort(null);
        return places;
    }
}
