package io.tributary.spark;

import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Rows that are worked out and shuffled once, however many queries read them: what a shuffle has written stays until
 * its RDD is gone, and each query of that RDD reads it. Where some of it is lost, Spark works that out again.
 */
public final class HeldRows {
    private final RDD<InternalRow> shuffled;
    private final Dataset<Row> rows;

    /** {@code repartitioned}: whose last step is a shuffle. */
    HeldRows(Dataset<Row> repartitioned) {
        shuffled = repartitioned.queryExecution().toRdd();
        rows = repartitioned.sparkSession().internalCreateDataFrame(shuffled, repartitioned.schema(), false);
    }

    public Dataset<Row> rows() {
        return rows;
    }

    /** Removes the files of the shuffle, which Spark would do some time after a full collection of the driver's heap. */
    public void release() {
        Dependency<?> dependency = shuffled.dependencies().apply(0);
        while (!(dependency instanceof ShuffleDependency)) {
            dependency = dependency.rdd().dependencies().apply(0);
        }
        int shuffle = ((ShuffleDependency<?, ?, ?>) dependency).shuffleId();
        shuffled.sparkContext().cleaner().foreach(cleaner -> {
            cleaner.doCleanupShuffle(shuffle, false);
            return null;
        });
    }
}
