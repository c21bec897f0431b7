package io.tributary.spark;

import org.apache.spark.Dependency;
import org.apache.spark.FutureAction;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkException;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.util.ThreadUtils;
import scala.Option;
import scala.concurrent.duration.Duration;

/**
 * Rows that one Spark job computes and shuffles before a query reads them.
 *
 * <p>A shuffle's output stays until its RDD is gone, and each query of that RDD reads it. If some of it is lost, Spark
 * computes that part again.
 */
public final class HeldRows {
    private final RDD<InternalRow> shuffled;
    private final Dataset<Row> rows;

    /** Computes the rows. The last step of {@code repartitioned} must be a shuffle. */
    HeldRows(Dataset<Row> repartitioned) throws SparkException {
        QueryExecution query = repartitioned.queryExecution();
        shuffled = query.toRdd();
        rows = repartitioned.sparkSession().internalCreateDataFrame(shuffled, repartitioned.schema(), false);
        // With an execution id, Spark sends the session's settings to the tasks.
        FutureAction<?> shuffling = SQLExecution.withNewExecutionId(
                query, Option.apply("shuffle"), () -> shuffled.sparkContext().submitMapStage(shuffle()));
        ThreadUtils.awaitResult(shuffling, Duration.Inf());
    }

    public Dataset<Row> rows() {
        return rows;
    }

    /**
     * Removes the files of the shuffle. Spark would do so only some time after a full collection of the driver's heap.
     */
    public void release() {
        int number = shuffle().shuffleId();
        shuffled.sparkContext().cleaner().foreach(cleaner -> {
            cleaner.doCleanupShuffle(number, false);
            return null;
        });
    }

    private ShuffleDependency<?, ?, ?> shuffle() {
        Dependency<?> dependency = shuffled.dependencies().apply(0);
        while (!(dependency instanceof ShuffleDependency)) {
            dependency = dependency.rdd().dependencies().apply(0);
        }
        return (ShuffleDependency<?, ?, ?>) dependency;
    }
}
