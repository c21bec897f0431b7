package io.tributary.spark;

import com.google.common.collect.AbstractIterator;
import com.google.common.collect.Iterators;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Folds changes within each task, as Spark aggregates partially before it sends rows: it leaves out changes that a later
 * change of their key supersedes, whatever else the batch holds.
 *
 * <p>Not for a batch in which a primary key changed: there a change can matter to another key.
 */
public final class PartialFold {
    /** The latest changes of all tasks may take this part of the memory. A task that has more hands them on. */
    private static final int SHARE_OF_MEMORY = 8;

    /** A task may hold so many bytes of changes however little memory there is. */
    private static final long LEAST_BYTES = 64 << 20;

    /** To hold three changes takes about as long as to send one change and to sort and read it at the other end. */
    private static final long MOST_FOR_ONE_LEFT_OUT = 3;

    private PartialFold() {}

    /** Returns the changes that no other change of their task supersedes. There are no more tasks than run at once. */
    public static Dataset<Row> of(Dataset<Row> changes) {
        StructType type = changes.schema();
        ChangeColumns columns = new ChangeColumns(type);
        int tasks = changes.sparkSession().sparkContext().defaultParallelism();
        return InternalRows.ofEachPartition(
                InternalRows.coalesced(changes, tasks),
                type,
                (number, rows) -> new Folding(type, columns, rows, tasks));
    }

    /**
     * Returns whether the earlier change does not matter beside the later one of the same key. That is so where the
     * later one is complete and comes after the earlier one both in the topic and in the source. Then it is the later
     * one by any order (order.py), and a table that has the later one already has both.
     */
    static boolean isSuperseded(ChangeColumns columns, InternalRow earlier, InternalRow later) {
        boolean isLater = columns.partition(earlier) == columns.partition(later)
                && columns.offset(earlier) < columns.offset(later)
                && Arrays.compareUnsigned(columns.logPosition(earlier), columns.logPosition(later)) <= 0;
        if (!isLater || columns.isDelete(later) || columns.lacksValues(later)) {
            return false;
        }
        if (columns.isRead(earlier)) {
            return columns.isSnapshotRead(earlier);
        }
        return !columns.isSnapshotRead(later)
                && Arrays.compareUnsigned(columns.position(earlier), columns.position(later)) <= 0;
    }

    private static final class Folding extends AbstractIterator<InternalRow> {
        private final UnsafeProjection projection;
        private final ChangeColumns columns;
        private final Iterator<InternalRow> rows;
        private final LatestChanges latest;
        private final long mostBytes;
        private Iterator<UnsafeRow> handedOn = Collections.emptyIterator();
        private long folded;
        private long leftOut;
        private boolean isWorthIt = true;

        Folding(StructType type, ChangeColumns columns, Iterator<InternalRow> rows, int tasks) {
            this.projection = UnsafeProjection$.MODULE$.create(type);
            this.columns = columns;
            this.rows = rows;
            this.latest = new LatestChanges(columns, type.size());
            // This runs in an executor, which has at most all of the tasks.
            this.mostBytes = Math.max(LEAST_BYTES, Runtime.getRuntime().maxMemory() / SHARE_OF_MEMORY / tasks);
        }

        @Override
        protected InternalRow computeNext() {
            while (!handedOn.hasNext()) {
                if (rows.hasNext()) {
                    if (!isWorthIt) {
                        return rows.next();
                    }
                    handedOn = fold();
                } else if (latest.bytes() > 0) {
                    handedOn = latest.takeAll();
                } else {
                    return endOfData();
                }
            }
            return handedOn.next();
        }

        /** Folds the next change, and returns the changes to hand on instead. */
        private Iterator<UnsafeRow> fold() {
            UnsafeRow change = projection.apply(rows.next()).copy();
            if (!isFoldable(change)) {
                return Iterators.singletonIterator(change);
            }
            folded++;
            UnsafeRow earlier = latest.put(change);
            boolean isLeftOut = earlier != null && isSuperseded(columns, earlier, change);
            leftOut += isLeftOut ? 1 : 0;
            Iterator<UnsafeRow> instead =
                    earlier == null || isLeftOut ? Collections.emptyIterator() : Iterators.singletonIterator(earlier);
            if (latest.bytes() <= mostBytes) {
                return instead;
            }
            isWorthIt = MOST_FOR_ONE_LEFT_OUT * leftOut >= folded;
            return Iterators.concat(instead, latest.takeAll());
        }

        private boolean isFoldable(InternalRow row) {
            return columns.reason(row) == null && columns.key(row) != null && !columns.isHalfOfMove(row);
        }
    }
}
