package io.tributary.connect.binlog;

import io.tributary.connect.TransformWithoutOptions;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Numbers the transactions of MySQL alike on each server that has them, for servers with GTIDs.
 *
 * <p>After a failover, Debezium finds its place on the new server by the GTIDs of its offset. But the files of that
 * server's log have other names, by which the lake could not order the changes. So the transform writes {@code
 * NUMBER:BYTE} to the field {@code sequence} of an event's {@code source}, which the connector leaves empty:
 *
 * <ul>
 *   <li>The number counts the transactions of the log up to this one: how many GTIDs the offset and the event have
 *       together. A snapshot's rows have the number of the last transaction that they saw.
 *   <li>The byte is that of the event, from the beginning of the transaction on. It is the one in the file if the
 *       transaction has no beginning that Debezium knows, as with XA.
 * </ul>
 *
 * <p>A streamed event without a GTID gets no number: GTIDs are off. MariaDB's GTIDs give no such number: a replica that
 * is written to can have a lower one after a higher one.
 */
public class TransactionNumbers<R extends ConnectRecord<R>> extends TransformWithoutOptions<R> {
    private static final String SEQUENCE = "sequence";

    private String lastSet = "";
    private String lastGtid = "";
    private long lastNumber;

    @Override
    public R apply(R record) {
        if (record instanceof SourceRecord sent
                && record.value() instanceof Struct envelope
                && envelope.schema().field("source") != null
                && envelope.get("source") instanceof Struct source
                && source.schema().field("gtid") != null
                && source.schema().field(SEQUENCE) != null
                && sent.sourceOffset().get("gtids") instanceof String gtids) {
            String gtid = source.getString("gtid");
            if (gtid != null || isOfSnapshot(source)) {
                source.put(SEQUENCE, number(gtids, gtid == null ? "" : gtid) + ":" + place(source, sent));
            }
        }
        return record;
    }

    private static boolean isOfSnapshot(Struct source) {
        String snapshot = source.getString("snapshot");
        return snapshot != null && !"false".equals(snapshot) && !"incremental".equals(snapshot);
    }

    private static long place(Struct source, SourceRecord sent) {
        long event = source.getInt64("pos");
        return sent.sourceOffset().get("pos") instanceof Long begin && begin <= event ? event - begin : event;
    }

    private synchronized long number(String gtids, String gtid) {
        if (!lastGtid.equals(gtid) || !lastSet.equals(gtids)) {
            lastNumber = count(gtids, gtid);
            lastSet = gtids;
            lastGtid = gtid;
        }
        return lastNumber;
    }

    /** The set is {@code UUID:1-5:7:TAG:1-3,UUID:1}, a GTID {@code UUID:8} or {@code UUID:TAG:4}. */
    private static long count(String gtids, String gtid) {
        int end = gtid.lastIndexOf(':');
        String its = gtid.isEmpty() ? "" : gtid.substring(0, end);
        long itsNumber = gtid.isEmpty() ? 0 : Long.parseLong(gtid.substring(end + 1));
        boolean isNew = !gtid.isEmpty();
        long count = 0;
        for (String ofServer : gtids.split(",")) {
            String[] parts = ofServer.strip().split(":");
            String series = parts[0];
            for (int i = 1; i < parts.length; i++) {
                String part = parts[i].strip();
                if (!Character.isDigit(part.charAt(0))) {
                    series = parts[0] + ":" + part;
                    continue;
                }
                int dash = part.indexOf('-');
                long first = Long.parseLong(dash < 0 ? part : part.substring(0, dash));
                long last = Long.parseLong(part.substring(dash + 1));
                count += last - first + 1;
                isNew &= !(series.equalsIgnoreCase(its) && first <= itsNumber && itsNumber <= last);
            }
        }
        return isNew ? count + 1 : count;
    }
}
