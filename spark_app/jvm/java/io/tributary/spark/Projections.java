package io.tributary.spark;

import com.google.common.collect.AbstractIterator;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.MutableProjection;
import org.apache.spark.sql.catalyst.expressions.MutableProjection$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.reflect.ClassTag$;

/**
 * Selects one after the other, analysed once, that hand on values and not rows of bytes.
 *
 * <p>Spark makes one projection of several, and then asks for a value that has several uses as many times; or it writes
 * what each selects as bytes: of an event that each of them names, all of its payload and schema.
 */
public final class Projections implements Serializable {
    private static final long serialVersionUID = 1;

    private final StructType type;
    private final int needed;
    private final List<Selection> steps;

    private Projections(StructType type, int needed, List<Selection> steps) {
        this.type = type;
        this.needed = needed;
        this.steps = steps;
    }

    /**
     * Of rows of the type, as Spark's JSON of it: those in which the column of that name is not null; and the columns of
     * each step, of the columns of the one before.
     */
    public static Projections of(SparkSession spark, String type, String needed, List<List<Column>> steps) {
        Dataset<Row> rows = empty(spark, (StructType) DataType.fromJson(type));
        int placeOfNeeded = rows.schema().fieldIndex(needed);
        List<Selection> selections = new ArrayList<>();
        for (List<Column> step : steps) {
            Dataset<Row> selected = rows.select(Expressions.seq(step));
            selections.add(new Selection(selected));
            rows = empty(spark, selected.schema());
        }
        return new Projections(rows.schema(), placeOfNeeded, selections);
    }

    /** Returns the result of all steps for rows of the type. */
    public Dataset<Row> apply(Dataset<Row> rows) {
        return InternalRows.ofEachPartition(rows, type, (number, found) -> new Made(found));
    }

    private static Dataset<Row> empty(SparkSession spark, StructType type) {
        RDD<InternalRow> none = spark.sparkContext().emptyRDD(ClassTag$.MODULE$.apply(InternalRow.class));
        return spark.internalCreateDataFrame(none, type, false);
    }

    /** The expressions that Spark builds from a select, and the columns that they use. */
    private static final class Selection implements Serializable {
        private static final long serialVersionUID = 1;

        private final Seq<Expression> expressions;
        private final Seq<Attribute> columns;

        @SuppressWarnings("unchecked")
        Selection(Dataset<Row> selected) {
            LogicalPlan plan = selected.queryExecution().optimizedPlan();
            // It leaves out what selects all columns as they are.
            boolean isProject = plan instanceof Project;
            Seq<?> found = isProject ? ((Project) plan).projectList() : plan.output();
            expressions = withoutCopies((Seq<Expression>) found);
            columns = isProject ? ((Project) plan).child().output() : plan.output();
        }

        /**
         * The same values, as objects: of text, structs, arrays and maps a MutableProjection keeps copies, lest the
         * bytes that they are of change (CodeGenerator#setColumn). These rows are gone before their bytes are.
         */
        private static Seq<Expression> withoutCopies(Seq<Expression> expressions) {
            List<Expression> found = new ArrayList<>();
            for (Expression expression : JavaConverters.seqAsJavaList(expressions)) {
                found.add(isCopied(expression.dataType()) ? Expressions.asObject(expression) : expression);
            }
            return Expressions.seq(found);
        }

        private static boolean isCopied(DataType type) {
            return type instanceof StringType
                    || type instanceof StructType
                    || type instanceof ArrayType
                    || type instanceof MapType;
        }

        MutableProjection projection() {
            MutableProjection projection = MutableProjection$.MODULE$.create(expressions, columns);
            projection.initialize(TaskContext.getPartitionId());
            return projection;
        }
    }

    /** The rows of a task. One is good until the next is asked for. */
    private final class Made extends AbstractIterator<InternalRow> {
        private final Iterator<InternalRow> rows;
        private final List<MutableProjection> projections = new ArrayList<>();

        Made(Iterator<InternalRow> rows) {
            this.rows = rows;
            steps.forEach(step -> projections.add(step.projection()));
        }

        @Override
        protected InternalRow computeNext() {
            while (rows.hasNext()) {
                InternalRow row = rows.next();
                if (!row.isNullAt(needed)) {
                    for (MutableProjection projection : projections) {
                        row = projection.apply(row);
                    }
                    return row;
                }
            }
            return endOfData();
        }
    }
}
