package io.tributary.spark;

import java.util.Iterator;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.Function2;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.StructType;
import scala.reflect.ClassTag$;

/** Works on rows in Spark's internal form, which its public API would turn into Java objects and back. */
final class InternalRows {
    private InternalRows() {}

    /**
     * Returns the rows that the function returns for each of Spark's partitions, given its number and rows. On both sides, a
     * row is valid until the next one is asked for.
     */
    static Dataset<Row> ofEachPartition(
            Dataset<Row> rows, StructType type, Function2<Integer, Iterator<InternalRow>, Iterator<InternalRow>> made) {
        return frame(rows.sparkSession(), of(rows).mapPartitionsWithIndex(made, true), type);
    }

    /** Returns the same rows in so many of Spark's partitions, or fewer. */
    static Dataset<Row> coalesced(Dataset<Row> rows, int partitions) {
        return frame(rows.sparkSession(), of(rows).coalesce(partitions), rows.schema());
    }

    /** Returns the internal rows, without a copy where there is an RDD of them already. */
    private static JavaRDD<InternalRow> of(Dataset<Row> rows) {
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        RDD<InternalRow> found = plan instanceof LogicalRDD
                ? ((LogicalRDD) plan).rdd()
                : rows.queryExecution().toRdd();
        return new JavaRDD<>(found, ClassTag$.MODULE$.apply(InternalRow.class));
    }

    private static Dataset<Row> frame(SparkSession spark, JavaRDD<InternalRow> rows, StructType type) {
        return spark.internalCreateDataFrame(rows.rdd(), type, false);
    }
}
