package io.tributary.spark;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.SerializableString;
import com.fasterxml.jackson.core.exc.InputCoercionException;
import com.fasterxml.jackson.core.io.SerializedString;
import java.io.IOException;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads the JSON text of a payload as a struct of Spark's, and says what is wrong with it.
 *
 * <p>One pass over the bytes does what takes {@code from_json}, a check that they are UTF-8 and
 * {@code json_object_keys} one each, in a third of their time together; and Spark compiles the expressions around it,
 * which it does not around {@code from_json}.
 */
public final class PayloadReader implements Serializable {
    private static final long serialVersionUID = 1;
    private static final int MOST_PLACES = 1_000;
    /** Fields of an object: to remember one more copies those before it. */
    private static final int MOST_EXPECTED = 2_000;

    private static final UTF8String NOT_UTF8 = UTF8String.fromString("not_utf8");
    private static final UTF8String MISMATCH = UTF8String.fromString("mismatch");

    private final StructReader root;

    private PayloadReader(StructReader root) {
        this.root = root;
    }

    /**
     * A reader as that of {@link #read}, which finds out beside it which of the names the payload has at its top: of
     * the name at place n, bit n of {@link Findings#names}.
     */
    static PayloadReader of(String wire, String closed, String ignored, List<String> names) {
        StructType type = (StructType) DataType.fromJson(wire);
        Pattern isIgnored = ignored == null ? null : Pattern.compile(ignored);
        StructReader root = new StructReader(type, "".equals(closed), isIgnored, names);
        if (closed != null && !closed.isEmpty()) {
            int place = type.fieldIndex(closed);
            DataType inner = type.fields()[place].dataType();
            root.readers[place] = new StructReader((StructType) inner, true, isIgnored, List.of());
        }
        return new PayloadReader(root);
    }

    /** The type of what {@link #parse} returns, for payloads of that type. */
    static StructType resultType(String wire) {
        return new StructType()
                .add("payload", DataType.fromJson(wire))
                .add("problem", DataTypes.StringType)
                .add("has_unnamed", DataTypes.BooleanType);
    }

    /**
     * The column {@code struct<payload, problem string, has_unnamed boolean>}, null where the text is.
     *
     * <p>{@code payload} is of the type {@code wire}, which comes as Spark's JSON of it. {@code problem}: "not_utf8",
     * "mismatch" where the text is not JSON or some value not of its type, else null; a payload that is neither UTF-8
     * nor a JSON object is null, a value of another type too. {@code has_unnamed}: whether the object at
     * {@code closed}, the name of a field of {@code wire} or "" for all of the payload, has a field that {@code wire}
     * does not name, and that does not match {@code ignored}; not asked where {@code closed} is null.
     */
    public static Column read(Column text, String wire, String closed, String ignored) {
        PayloadReader reader = of(wire, closed, ignored, List.of());
        return Expressions.call(reader, "parse", resultType(wire), text);
    }

    /** What Spark's generated code calls for each row. By the name of a static method, Py4J may find it instead. */
    public InternalRow parse(UTF8String text) {
        return parse(text, new Findings());
    }

    InternalRow parse(UTF8String text, Findings findings) {
        byte[] bytes = text.getBytes();
        // Jackson lets some bytes pass that are no text.
        if (!Utf8.isWellFormed(bytes)) {
            return new GenericInternalRow(new Object[] {null, NOT_UTF8, false});
        }
        InternalRow payload = null;
        try (PayloadParser parser = PayloadParser.of(bytes)) {
            if (parser.nextToken() == JsonToken.START_OBJECT) {
                InternalRow found = root.read(parser, findings);
                payload = parser.nextToken() == null ? found : null;
            }
        } catch (JsonParseException notJson) {
            findings.isObject = false;
        } catch (IOException unreadable) {
            findings.problem = MISMATCH;
        }
        if (payload == null && findings.problem == null) {
            findings.isObject = false;
            findings.problem = MISMATCH;
        }
        return new GenericInternalRow(new Object[] {payload, findings.problem, findings.hasUnnamed});
    }

    /** The facts found in one payload's text, apart from its values. */
    static final class Findings {
        UTF8String problem;
        boolean hasUnnamed;
        boolean isObject = true;
        long names;
    }

    /** Reads the value at which the parser stands, which is not null; null where it is of another type. */
    private interface ValueReader extends Serializable {
        Object read(PayloadParser parser, Findings findings) throws IOException;
    }

    private static ValueReader readerOf(DataType type) {
        if (type instanceof StructType) {
            return new StructReader((StructType) type, false, null, List.of());
        }
        if (type instanceof ArrayType) {
            return new ArrayReader(readerOf(((ArrayType) type).elementType()));
        }
        if (type instanceof MapType) {
            return new MapReader(readerOf(((MapType) type).valueType()));
        }
        if (type instanceof StringType) {
            return PayloadReader::readText;
        }
        if (type instanceof LongType) {
            return (parser, findings) -> isWhole(parser) ? parser.getLongValue() : null;
        }
        if (type instanceof IntegerType) {
            return (parser, findings) -> isWhole(parser) ? parser.getIntValue() : null;
        }
        if (type instanceof BooleanType) {
            return (parser, findings) -> parser.currentToken().isBoolean() ? parser.getBooleanValue() : null;
        }
        if (type instanceof DoubleType) {
            return (parser, findings) ->
                    parser.currentToken().isNumeric() ? (Double) parser.getDoubleValue() : special(parser);
        }
        if (type instanceof FloatType) {
            return (parser, findings) -> {
                if (parser.currentToken().isNumeric()) {
                    return parser.getFloatValue();
                }
                Double found = special(parser);
                return found == null ? null : found.floatValue();
            };
        }
        if (type instanceof DecimalType) {
            int precision = ((DecimalType) type).precision();
            int scale = ((DecimalType) type).scale();
            return (parser, findings) ->
                    parser.currentToken().isNumeric() ? decimal(parser.getDecimalValue(), precision, scale) : null;
        }
        throw new IllegalArgumentException("No payload holds values of type " + type.sql());
    }

    private static boolean isWhole(PayloadParser parser) {
        return parser.currentToken() == JsonToken.VALUE_NUMBER_INT;
    }

    /** Returns a text, or the JSON of any other value as it was written. */
    private static UTF8String readText(PayloadParser parser, Findings findings) throws IOException {
        if (parser.currentToken().isStructStart()) {
            return parser.jsonOfChildren();
        }
        UTF8String plain = parser.currentToken() == JsonToken.VALUE_STRING ? parser.plainText() : null;
        return plain == null ? UTF8String.fromString(parser.getText()) : plain;
    }

    /** The numbers that JSON has no digits for, as JsonConverter and Spark write them. */
    private static Double special(PayloadParser parser) throws IOException {
        if (parser.currentToken() != JsonToken.VALUE_STRING) {
            return null;
        }
        switch (parser.getText()) {
            case "NaN":
                return Double.NaN;
            case "Infinity":
            case "+Infinity":
            case "INF":
            case "+INF":
                return Double.POSITIVE_INFINITY;
            case "-Infinity":
            case "-INF":
                return Double.NEGATIVE_INFINITY;
            default:
                return null;
        }
    }

    private static Decimal decimal(BigDecimal value, int precision, int scale) {
        // Before it is scaled: a few characters can say a number of a billion digits.
        long whole = (long) value.precision() - value.scale();
        if (whole > precision - scale && value.signum() != 0 || Math.abs((long) value.scale()) > MOST_PLACES) {
            return null;
        }
        BigDecimal scaled = value.setScale(scale, RoundingMode.HALF_UP);
        if (scaled.precision() > precision) {
            return null;
        }
        return precision <= Decimal.MAX_LONG_DIGITS()
                ? Decimal.createUnsafe(scaled.unscaledValue().longValue(), precision, scale)
                : Decimal.apply(scaled, precision, scale);
    }

    /** The value, null where it is null or of another type; then the parser stands at its end. */
    private static Object readValue(ValueReader reader, PayloadParser parser, Findings findings) throws IOException {
        if (parser.currentToken() == JsonToken.VALUE_NULL) {
            return null;
        }
        Object value;
        try {
            value = reader.read(parser, findings);
        } catch (InputCoercionException tooLarge) {
            value = null;
        }
        if (value == null) {
            findings.problem = MISMATCH;
            parser.skipChildren();
        }
        return value;
    }

    private static final class StructReader implements ValueReader {
        private static final long serialVersionUID = 1;

        final ValueReader[] readers;
        private final Map<String, Integer> places = new HashMap<>();
        private final boolean isClosed;
        private final Pattern isIgnored;
        private final List<String> names;
        /** The fields of the previous object. The next one probably has the same fields in the same order. */
        private volatile Field[] expected = {};

        StructReader(StructType type, boolean isClosed, Pattern isIgnored, List<String> names) {
            this.isClosed = isClosed;
            this.isIgnored = isIgnored;
            this.names = names;
            readers = new ValueReader[type.size()];
            for (StructField field : type.fields()) {
                readers[places.size()] = readerOf(field.dataType());
                places.put(field.name(), places.size());
            }
        }

        @Override
        public InternalRow read(PayloadParser parser, Findings findings) throws IOException {
            if (parser.currentToken() != JsonToken.START_OBJECT) {
                return null;
            }
            Object[] values = new Object[readers.length];
            int number = 0;
            for (Field field = nextField(parser, 0); field != null; field = nextField(parser, ++number)) {
                parser.nextToken();
                findings.names |= field.mark;
                if (field.place >= 0) {
                    values[field.place] = readValue(readers[field.place], parser, findings);
                } else {
                    findings.hasUnnamed |= field.isUnnamed;
                    parser.skipChildren();
                }
            }
            return new GenericInternalRow(values);
        }

        /** The object's field of that number, null after its last: Jackson compares a name sooner than it reads it. */
        private Field nextField(PayloadParser parser, int number) throws IOException {
            Field[] fields = expected;
            boolean isExpected = number < fields.length;
            if (isExpected && parser.nextFieldName(fields[number].name)) {
                return fields[number];
            }
            String name = isExpected ? parser.currentName() : parser.nextFieldName();
            if (parser.currentToken() != JsonToken.FIELD_NAME) {
                return null;
            }
            Field found = field(name);
            if (number < MOST_EXPECTED) {
                Field[] changed = Arrays.copyOf(fields, Math.max(fields.length, number + 1));
                changed[number] = found;
                expected = changed;
            }
            return found;
        }

        private Field field(String name) {
            boolean isUnnamed =
                    isClosed && !(isIgnored != null && isIgnored.matcher(name).matches());
            int number = names.indexOf(name);
            long mark = number < 0 ? 0 : 1L << number;
            return new Field(new SerializedString(name), places.getOrDefault(name, -1), isUnnamed, mark);
        }
    }

    /**
     * {@code place} is that among the values, -1 where it has none; {@code isUnnamed} is then whether it needs one.
     * {@code mark} is its bit in {@link Findings#names}.
     */
    private static final class Field implements Serializable {
        private static final long serialVersionUID = 1;

        final SerializableString name;
        final int place;
        final boolean isUnnamed;
        final long mark;

        Field(SerializableString name, int place, boolean isUnnamed, long mark) {
            this.name = name;
            this.place = place;
            this.isUnnamed = isUnnamed;
            this.mark = mark;
        }
    }

    private static final class ArrayReader implements ValueReader {
        private static final long serialVersionUID = 1;

        private final ValueReader items;

        ArrayReader(ValueReader items) {
            this.items = items;
        }

        @Override
        public Object read(PayloadParser parser, Findings findings) throws IOException {
            if (parser.currentToken() != JsonToken.START_ARRAY) {
                return null;
            }
            List<Object> values = new ArrayList<>();
            while (parser.nextToken() != JsonToken.END_ARRAY) {
                values.add(readValue(items, parser, findings));
            }
            return new GenericArrayData(values.toArray());
        }
    }

    private static final class MapReader implements ValueReader {
        private static final long serialVersionUID = 1;

        private final ValueReader items;

        MapReader(ValueReader items) {
            this.items = items;
        }

        @Override
        public Object read(PayloadParser parser, Findings findings) throws IOException {
            if (parser.currentToken() != JsonToken.START_OBJECT) {
                return null;
            }
            Map<Object, Object> values = new LinkedHashMap<>();
            for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
                parser.nextToken();
                values.put(UTF8String.fromString(name), readValue(items, parser, findings));
            }
            return new ArrayBasedMapData(
                    new GenericArrayData(values.keySet().toArray()),
                    new GenericArrayData(values.values().toArray()));
        }
    }
}
