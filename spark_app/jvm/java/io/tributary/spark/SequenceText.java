package io.tributary.spark;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The two log sequence numbers of {@code ["24023119","24023128"]}, of which either can be null instead of a string
 * (io.debezium.connector.postgresql.SourceInfo). Spark's own functions of text take a fifteenth of the time of decoding
 * for them.
 */
public final class SequenceText {
    /** Of a long; of more than it holds, so many digits make it negative. */
    private static final int MOST_DIGITS = 19;

    private SequenceText() {}

    /** The column {@code bigint} of the first; null where it is no number. */
    public static Column first(Column sequence) {
        return Expressions.callStatic(SequenceText.class, "firstOf", DataTypes.LongType, sequence);
    }

    /** The column {@code bigint} of the last; null where it is no number. */
    public static Column last(Column sequence) {
        return Expressions.callStatic(SequenceText.class, "lastOf", DataTypes.LongType, sequence);
    }

    /** What Spark's generated code calls for each row. */
    public static Long firstOf(UTF8String sequence) {
        byte[] text = sequence.getBytes();
        if (text.length < 2 || text[0] != '[' || text[1] != '"') {
            return null;
        }
        int end = 2;
        while (end < text.length && text[end] != '"') {
            end++;
        }
        return end == text.length ? null : number(text, 2, end);
    }

    /** What Spark's generated code calls for each row. */
    public static Long lastOf(UTF8String sequence) {
        byte[] text = sequence.getBytes();
        int end = text.length - 2;
        if (end < 1 || text[end] != '"' || text[end + 1] != ']') {
            return null;
        }
        int begin = end;
        while (begin > 0 && text[begin - 1] != '"') {
            begin--;
        }
        return begin == 0 ? null : number(text, begin, end);
    }

    private static Long number(byte[] text, int begin, int end) {
        if (begin == end || end - begin > MOST_DIGITS) {
            return null;
        }
        long number = 0;
        for (int n = begin; n < end; n++) {
            if (text[n] < '0' || text[n] > '9') {
                return null;
            }
            number = 10 * number + text[n] - '0';
        }
        return number < 0 ? null : (Long) number;
    }
}
