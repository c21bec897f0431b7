package io.tributary.spark;

import java.io.Serializable;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.hudi.index.bucket.BucketIdentifier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.execution.LogicalRDD$;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Rows that have been sent to the tasks that write the buckets of their keys, and are read from there. */
public final class BucketedRows implements Serializable {
    private static final long serialVersionUID = 1;
    private static final int SEED_OF_SPARK = 42;
    private final String hashField;
    private final int buckets;
    private final int[] numbers;

    BucketedRows(String hashField, int buckets, int tasks) {
        this.hashField = hashField;
        this.buckets = buckets;
        this.numbers = IntStream.range(0, tasks)
                .map(task -> IntStream.iterate(0, n -> n + 1)
                        .filter(n -> Math.floorMod(Murmur3_x86_32.hashInt(n, SEED_OF_SPARK), tasks) == task)
                        .findFirst()
                        .getAsInt())
                .toArray();
    }

    public int bucket(UTF8String key) {
        return BucketIdentifier.getBucketId(key.toString(), hashField, buckets);
    }

    public int number(UTF8String key) {
        return numbers[bucket(key) % numbers.length];
    }

    private Column call(String method, Column key) {
        Literal self = Literal.fromObject(this, new ObjectType(BucketedRows.class));
        return new Column(new Invoke(
                self,
                method,
                DataTypes.IntegerType,
                seq(List.of(key.expr())),
                seq(List.<AbstractDataType>of()),
                true,
                true,
                true));
    }

    public static Column bucketOf(Column key, String hashField, int buckets) {
        return new BucketedRows(hashField, buckets, 1).call("bucket", key);
    }

    public static Dataset<Row> hold(Dataset<Row> rows, Column key, String hashField, int buckets, int tasks) {
        Column number = new BucketedRows(hashField, buckets, tasks).call("number", key);
        Dataset<Row> sent = rows.repartition(tasks, number);
        RDD<InternalRow> rdd = sent.queryExecution().toRdd();
        return Dataset.ofRows(rows.sparkSession(), LogicalRDD$.MODULE$.fromDataset(rdd, sent, false));
    }

    private static <T> Seq<T> seq(List<T> items) {
        return JavaConverters.asScalaBuffer(items).toList();
    }
}
