package io.tributary.spark;

import java.io.ByteArrayOutputStream;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.types.DataTypes;

/** Undoes the compression by zlib (RFC 1950), for which Spark has no function. */
public final class Inflated {
    private static final int MOST_BYTES = 512 << 20;
    private static final int BYTES_AT_ONCE = 8192;

    private Inflated() {}

    /** Returns the bytes before their compression; null if they are not what zlib writes, or more than 512 MiB. */
    public static Column read(Column bytes) {
        return Expressions.callStatic(Inflated.class, "inflate", DataTypes.BinaryType, bytes);
    }

    /** Reads a row's bytes. Spark's generated code calls this method for each row. */
    public static byte[] inflate(byte[] bytes) {
        Inflater inflater = new Inflater();
        try {
            inflater.setInput(bytes);
            ByteArrayOutputStream found = new ByteArrayOutputStream(Math.max(32, bytes.length * 2));
            byte[] some = new byte[BYTES_AT_ONCE];
            while (!inflater.finished()) {
                int count = inflater.inflate(some);
                boolean endsTooEarly = count == 0 && !inflater.finished();
                if (endsTooEarly || found.size() + count > MOST_BYTES) {
                    return null;
                }
                found.write(some, 0, count);
            }
            return found.toByteArray();
        } catch (DataFormatException notZlib) {
            return null;
        } finally {
            inflater.end();
        }
    }
}
