package io.tributary.spark;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.Serializable;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.SystemLimitException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.types.DataTypes;

/**
 * Limits what Avro's reader takes from one record, in each JVM that reads any.
 *
 * <p>By default, a damaged length makes the reader ask for two gigabytes of memory, and the whole JVM ends. Spark's
 * options cannot set the limits on a cluster: they would hold blanks, at which EMR splits them.
 */
public final class AvroLimits implements Serializable {
    private static final long serialVersionUID = 1;

    private final HashMap<String, String> limits;

    private AvroLimits(Map<String, String> limits) {
        this.limits = new HashMap<>(limits);
    }

    /** Returns the same bytes, to be read under the limits: Java properties that Avro knows. Properties that are set already keep their values. */
    public static Column limited(Column bytes, Map<String, String> limits) {
        return Expressions.call(new AvroLimits(limits), "same", DataTypes.BinaryType, bytes);
    }

    /** Returns a row's bytes. Spark's generated code calls this method for each row. */
    public byte[] same(byte[] bytes) {
        return bytes;
    }

    /** A task reads this object before it reads any record. */
    private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
        in.defaultReadObject();
        limits.forEach((name, limit) -> System.getProperties().putIfAbsent(name, limit));
        try {
            // Avro has read the properties already if something else has used its reader.
            Method reset = SystemLimitException.class.getDeclaredMethod("resetLimits");
            reset.setAccessible(true);
            reset.invoke(null);
        } catch (ReflectiveOperationException anotherAvro) {
            // A version without this method reads the properties when it is first used.
        }
    }
}
