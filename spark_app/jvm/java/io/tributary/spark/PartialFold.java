package io.tributary.spark;

import com.google.common.collect.AbstractIterator;
import com.google.common.collect.Iterators;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * A fold within each task, as Spark aggregates partially before it sends rows: leaves out changes that another one of
 * their key follows, whatever else the batch holds.
 *
 * <p>Not of a batch in which a primary key changed: there a change can matter to another key.
 */
public final class PartialFold {
    /** What part of the memory the latest changes of all tasks may take; those of a task that has more are handed on. */
    private static final int SHARE_OF_MEMORY = 8;

    /** What a task may hold of them however little memory there is. */
    private static final long LEAST_BYTES = 64 << 20;

    /** To hold three changes takes about as long as to send one, and to sort and read it where it is written. */
    private static final long MOST_FOR_ONE_LEFT_OUT = 3;

    /** Of changes that are looked at together; large ones are few, and need not be. */
    private static final int MOST_TOGETHER = 32;

    private static final long MOST_BYTES_TOGETHER = 1 << 20;

    private PartialFold() {}

    /** Of the changes, in any order, those that none of the same task supersedes: of no more tasks than run at once. */
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
     * Whether the earlier change does not matter beside the later one, of the same key: the later one is complete, and
     * comes after it by its place in the topic and in the source both, so in any order by either (order.py); and what
     * was applied before, if it has the later one, has both.
     */
    static boolean isSuperseded(ChangeColumns columns, InternalRow earlier, InternalRow later) {
        boolean isLater = columns.partition(earlier) == columns.partition(later)
                && columns.offset(earlier) < columns.offset(later)
                && columns.lsn(earlier) <= columns.lsn(later);
        if (!isLater || columns.isDelete(later) || columns.lacksValues(later)) {
            return false;
        }
        if (columns.isRead(earlier)) {
            return columns.isSnapshotRead(earlier);
        }
        return !columns.isSnapshotRead(later) && columns.commitLsn(earlier) <= columns.commitLsn(later);
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
            // Here is the memory of the executor, which has no more of the tasks than there are in all.
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

        /** What is to be handed on in place of the next changes, if anything. */
        private Iterator<UnsafeRow> fold() {
            List<UnsafeRow> instead = new ArrayList<>();
            List<UnsafeRow> changes = new ArrayList<>();
            long taken = 0;
            for (int n = 0; n < MOST_TOGETHER && taken < MOST_BYTES_TOGETHER && rows.hasNext(); n++) {
                UnsafeRow change = projection.apply(rows.next()).copy();
                taken += change.getSizeInBytes();
                (isFoldable(change) ? changes : instead).add(change);
            }
            latest.lookAhead(changes);
            for (UnsafeRow change : changes) {
                UnsafeRow earlier = latest.put(change);
                boolean isLeftOut = earlier != null && isSuperseded(columns, earlier, change);
                leftOut += isLeftOut ? 1 : 0;
                if (earlier != null && !isLeftOut) {
                    instead.add(earlier);
                }
            }
            folded += changes.size();
            if (latest.bytes() <= mostBytes) {
                return instead.iterator();
            }
            isWorthIt = MOST_FOR_ONE_LEFT_OUT * leftOut >= folded;
            return Iterators.concat(instead.iterator(), latest.takeAll());
        }

        private boolean isFoldable(InternalRow row) {
            return columns.reason(row) == null && columns.key(row) != null && !columns.isHalfOfMove(row);
        }
    }
}
