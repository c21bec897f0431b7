package io.tributary.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads the JSON text of a payload that comes without a schema, in whichever of some shapes it has.
 *
 * <p>The names at the top of the payload tell its shape, and reading finds them. In all likelihood a payload has the
 * shape of the one before: then it is parsed once.
 */
public final class ShapeReader implements Serializable {
    private static final long serialVersionUID = 1;

    private final List<PayloadReader> readers = new ArrayList<>();
    private final List<Marks> marks = new ArrayList<>();
    private volatile int expected;

    private ShapeReader() {}

    /** A shape of the type {@code wire}, of which at least that many of the names are at the top of a payload. */
    public static Shape shape(String name, String wire, String closed, String ignored, List<String> names, int least) {
        return new Shape(name, wire, closed, ignored, names, least);
    }

    /**
     * Returns a column with a field for each shape: what {@link PayloadReader#read} returns for the payload where that
     * is the first shape that it has, and null in all others.
     *
     * <p>The column is null where the text is no JSON object, or has none of the shapes.
     */
    public static Column read(Column text, List<Shape> shapes) {
        List<String> names = new ArrayList<>();
        shapes.forEach(shape -> names.addAll(shape.names));
        ShapeReader reader = new ShapeReader();
        StructType result = new StructType();
        for (Shape shape : shapes) {
            long all = 0;
            for (String name : shape.names) {
                all |= 1L << names.indexOf(name);
            }
            reader.marks.add(new Marks(all, shape.least));
            reader.readers.add(PayloadReader.of(shape.wire, shape.closed, shape.ignored, names));
            result = result.add(shape.name, PayloadReader.resultType(shape.wire));
        }
        return Expressions.call(reader, "find", result, text);
    }

    /** Spark's generated code calls this for each row. */
    public InternalRow find(UTF8String text) {
        PayloadReader.Findings findings = new PayloadReader.Findings();
        int guess = expected;
        InternalRow read = readers.get(guess).parse(text, findings);
        int shape = shapeOf(findings.names);
        if (shape < 0 || !findings.isObject) {
            return null;
        }
        if (shape != guess) {
            read = readers.get(shape).parse(text);
            expected = shape;
        }
        Object[] found = new Object[readers.size()];
        found[shape] = read;
        return new GenericInternalRow(found);
    }

    private int shapeOf(long names) {
        for (int shape = 0; shape < marks.size(); shape++) {
            if (Long.bitCount(names & marks.get(shape).names) >= marks.get(shape).least) {
                return shape;
            }
        }
        return -1;
    }

    /** What {@link #read} is given for each shape. */
    public static final class Shape {
        private final String name;
        private final String wire;
        private final String closed;
        private final String ignored;
        private final List<String> names;
        private final int least;

        private Shape(String name, String wire, String closed, String ignored, List<String> names, int least) {
            this.name = name;
            this.wire = wire;
            this.closed = closed;
            this.ignored = ignored;
            this.names = names;
            this.least = least;
        }
    }

    /** The bits of a shape's names, and how many of them a payload has at least. */
    private static final class Marks implements Serializable {
        private static final long serialVersionUID = 1;

        final long names;
        final int least;

        Marks(long names, int least) {
            this.names = names;
            this.least = least;
        }
    }
}
