package io.tributary.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Finds text in text as Java does, which compares many bytes at a time; Spark goes byte by byte. */
public final class TextSearch {
    private TextSearch() {}

    /** Whether the text has the part in it, which is ASCII: {@link #has}, as a column. */
    public static Column contains(Column text, String part) {
        return found("has", text, part);
    }

    /** Whether the text begins with the part: {@link #begins}, as a column. */
    public static Column startsWith(Column text, String part) {
        return found("begins", text, part);
    }

    /** What Spark's generated code calls for each row, as {@link #begins}. */
    public static boolean has(UTF8String text, UTF8String part) {
        return new String(text.getBytes(), StandardCharsets.ISO_8859_1)
                .contains(new String(part.getBytes(), StandardCharsets.ISO_8859_1));
    }

    public static boolean begins(UTF8String text, UTF8String part) {
        byte[] start = part.getBytes();
        return text.numBytes() >= start.length
                && Arrays.equals(text.getBytes(), 0, start.length, start, 0, start.length);
    }

    private static Column found(String method, Column text, String part) {
        return Expressions.callStatic(TextSearch.class, method, DataTypes.BooleanType, text, functions.lit(part));
    }
}
