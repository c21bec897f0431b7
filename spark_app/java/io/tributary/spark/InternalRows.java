package io.tributary.spark;

import java.util.Iterator;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.Function2;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.StructType;
import scala.reflect.ClassTag$;

/** Makes rows of rows as Spark has them inside, which its public API would turn into Java objects and back. */
final class InternalRows {
    private InternalRows() {}

    /**
     * What is made of the rows of each of Spark's partitions, by its number. A row is good until the next is asked for,
     * on both sides.
     */
    static Dataset<Row> ofEachPartition(
            Dataset<Row> rows,
            StructType type,
            Function2<Integer, Iterator<InternalRow>, Iterator<InternalRow>> made) {
        RDD<InternalRow> found = new JavaRDD<>(of(rows), ClassTag$.MODULE$.apply(InternalRow.class))
                .mapPartitionsWithIndex(made, true)
                .rdd();
        return rows.sparkSession().internalCreateDataFrame(found, type, false);
    }

    /** Without a copy of what is there as rows of Spark's already. */
    private static RDD<InternalRow> of(Dataset<Row> rows) {
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        return plan instanceof LogicalRDD
                ? ((LogicalRDD) plan).rdd()
                : rows.queryExecution().toRdd();
    }
}
