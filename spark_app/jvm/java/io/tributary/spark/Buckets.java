package io.tributary.spark;

import com.google.common.collect.Iterators;
import java.io.Serializable;
import java.util.stream.IntStream;
import org.apache.hudi.index.bucket.BucketIdentifier;
import org.apache.spark.SparkException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/** The simple buckets of an unpartitioned Hudi table, and their distribution over tasks. */
public final class Buckets implements Serializable {
    private static final long serialVersionUID = 1;

    /** The seed of the hash by which Spark sends rows to tasks (HashPartitioning). */
    private static final int SEED = 42;

    private final String hashField;
    private final int buckets;
    private final int[] numbersOfTasks;

    public Buckets(String hashField, int buckets, int tasks) {
        this.hashField = hashField;
        this.buckets = buckets;
        this.numbersOfTasks = IntStream.range(0, tasks)
                .map(task -> IntStream.iterate(0, number -> number + 1)
                        .filter(number -> Math.floorMod(Murmur3_x86_32.hashInt(number, SEED), tasks) == task)
                        .findFirst()
                        .getAsInt())
                .toArray();
    }

    public int tasks() {
        return numbersOfTasks.length;
    }

    /** Returns the task that has the bucket, out of this number of tasks. */
    static int task(int bucket, int tasks) {
        return bucket % tasks;
    }

    /** Returns the bucket of a key, as a column {@code int}. */
    public Column bucketOf(Column key) {
        return Expressions.call(this, "bucket", DataTypes.IntegerType, key);
    }

    /** Sends each row to the task that has the bucket of its key. */
    public HeldRows hold(Dataset<Row> rows, Column key) throws SparkException {
        Column number = Expressions.call(this, "numberOfTask", DataTypes.IntegerType, key);
        return new HeldRows(rows.repartition(tasks(), number));
    }

    /** Returns the first row of each key. The rows must be grouped by key. */
    public Dataset<Row> firstOfEach(Dataset<Row> rows, String key) {
        StructType type = rows.schema();
        int column = type.fieldIndex(key);
        return InternalRows.ofEachPartition(rows, type, (task, ofTask) -> {
            UTF8String[] latest = new UTF8String[1];
            return Iterators.filter(ofTask, row -> {
                UTF8String found = row.getUTF8String(column);
                if (found.equals(latest[0])) {
                    return false;
                }
                latest[0] = found.copy();
                return true;
            });
        });
    }

    /** Returns the bucket of a key. Spark's generated code calls this method for each row. */
    public int bucket(UTF8String key) {
        return BucketIdentifier.getBucketId(key.toString(), hashField, buckets);
    }

    /** Returns a number that Spark sends to the task of the key's bucket. Spark's generated code calls this method. */
    public int numberOfTask(UTF8String key) {
        return numbersOfTasks[task(bucket(key), tasks())];
    }
}
