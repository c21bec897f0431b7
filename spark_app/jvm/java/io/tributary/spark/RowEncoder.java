package io.tributary.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Encodes Spark rows in Avro's binary encoding (Avro 1.11, "Binary Encoding"). Hudi's columns come first.
 *
 * <p>It creates no Avro records in between. For each value of a record, Avro's writer determines which type of the
 * union it has.
 */
final class RowEncoder {
    private static final int HUDI_COLUMNS = HoodieRecord.HOODIE_META_COLUMNS.size();

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final BinaryEncoder out = EncoderFactory.get().binaryEncoder(bytes, null);
    private final int textOfHudi;
    private final FieldWriter[] columns;

    /** Throws IllegalArgumentException if a column has no field of its type, or a non-nullable field has no column. */
    RowEncoder(StructType type, Schema stored) {
        textOfHudi = stored.getFields().get(0).schema().getIndexNamed("string");
        columns = fieldWriters(
                type,
                stored.getFields().subList(HUDI_COLUMNS, stored.getFields().size()));
    }

    /** Encodes the row. The texts are the values of Hudi's columns, in Hudi's order. */
    byte[] encoded(InternalRow row, UTF8String... ofHudi) throws IOException {
        bytes.reset();
        for (UTF8String text : ofHudi) {
            out.writeIndex(textOfHudi);
            out.writeBytes(text.getByteBuffer());
        }
        for (FieldWriter column : columns) {
            column.write(row, out);
        }
        out.flush();
        return bytes.toByteArray();
    }

    private static FieldWriter[] fieldWriters(StructType type, List<Schema.Field> fields) {
        Set<String> missing = new HashSet<>(List.of(type.fieldNames()));
        FieldWriter[] writers = new FieldWriter[fields.size()];
        for (int n = 0; n < writers.length; n++) {
            Schema.Field field = fields.get(n);
            if (missing.remove(field.name())) {
                int ordinal = type.fieldIndex(field.name());
                ValueWriter writer = writerOf(type.fields()[ordinal].dataType(), field.schema());
                writers[n] = (row, out) -> writer.write(row, ordinal, out);
            } else {
                int nothing = nullIndex(field.schema());
                require(nothing >= 0, "there is no column %s", field.name());
                writers[n] = (row, out) -> out.writeIndex(nothing);
            }
        }
        require(missing.isEmpty(), "there are no fields for the columns %s", missing);
        return writers;
    }

    private static ValueWriter writerOf(DataType type, Schema schema) {
        int nothing = nullIndex(schema);
        if (nothing < 0) {
            return presentWriter(type, schema);
        }
        require(schema.getTypes().size() == 2, "cannot choose a type of %s", schema);
        int present = 1 - nothing;
        ValueWriter writer = presentWriter(type, schema.getTypes().get(present));
        return (from, ordinal, out) -> {
            if (from.isNullAt(ordinal)) {
                out.writeIndex(nothing);
            } else {
                out.writeIndex(present);
                writer.write(from, ordinal, out);
            }
        };
    }

    private static ValueWriter presentWriter(DataType type, Schema schema) {
        ValueWriter writer =
                switch (schema.getType()) {
                    case BOOLEAN ->
                        type instanceof BooleanType
                                ? (from, ordinal, out) -> out.writeBoolean(from.getBoolean(ordinal))
                                : null;
                    case INT ->
                        type instanceof IntegerType || type instanceof DateType
                                ? (from, ordinal, out) -> out.writeInt(from.getInt(ordinal))
                                : null;
                    case LONG ->
                        type instanceof LongType || isMicroseconds(type, schema)
                                ? (from, ordinal, out) -> out.writeLong(from.getLong(ordinal))
                                : null;
                    case FLOAT ->
                        type instanceof FloatType
                                ? (from, ordinal, out) -> out.writeFloat(from.getFloat(ordinal))
                                : null;
                    case DOUBLE ->
                        type instanceof DoubleType
                                ? (from, ordinal, out) -> out.writeDouble(from.getDouble(ordinal))
                                : null;
                    case STRING ->
                        type instanceof StringType
                                ? (from, ordinal, out) -> out.writeBytes(
                                        from.getUTF8String(ordinal).getByteBuffer())
                                : null;
                    case BYTES ->
                        type instanceof BinaryType
                                ? (from, ordinal, out) -> out.writeBytes(from.getBinary(ordinal))
                                : null;
                    case FIXED -> type instanceof DecimalType decimal ? decimalWriter(decimal, schema) : null;
                    case ARRAY -> type instanceof ArrayType array ? arrayWriter(array, schema) : null;
                    case MAP -> type instanceof MapType map ? mapWriter(map, schema) : null;
                    case RECORD -> type instanceof StructType struct ? structWriter(struct, schema) : null;
                    default -> null;
                };
        require(writer != null, "%s cannot be written as %s", type.simpleString(), schema);
        return writer;
    }

    private static boolean isMicroseconds(DataType type, Schema schema) {
        return type instanceof TimestampType && schema.getLogicalType() instanceof LogicalTypes.TimestampMicros;
    }

    private static ValueWriter decimalWriter(DecimalType type, Schema schema) {
        int size = schema.getFixedSize();
        require(
                schema.getLogicalType() instanceof LogicalTypes.Decimal decimal
                        && decimal.getPrecision() == type.precision()
                        && decimal.getScale() == type.scale(),
                "%s cannot be written as %s",
                type.simpleString(),
                schema);
        return (from, ordinal, out) -> {
            byte[] shortest = from.getDecimal(ordinal, type.precision(), type.scale())
                    .toJavaBigDecimal()
                    .unscaledValue()
                    .toByteArray();
            byte[] fixed = new byte[size];
            int sign = size - shortest.length;
            Arrays.fill(fixed, 0, sign, (byte) (shortest[0] < 0 ? -1 : 0));
            System.arraycopy(shortest, 0, fixed, sign, shortest.length);
            out.writeFixed(fixed);
        };
    }

    private static ValueWriter arrayWriter(ArrayType type, Schema schema) {
        ValueWriter element = writerOf(type.elementType(), schema.getElementType());
        return (from, ordinal, out) -> {
            ArrayData elements = from.getArray(ordinal);
            out.writeArrayStart();
            writeItems(elements.numElements(), out, n -> element.write(elements, n, out));
            out.writeArrayEnd();
        };
    }

    private static ValueWriter mapWriter(MapType type, Schema schema) {
        ValueWriter value = writerOf(type.valueType(), schema.getValueType());
        require(type.keyType() instanceof StringType, "%s has keys that are no text", type.simpleString());
        return (from, ordinal, out) -> {
            MapData entries = from.getMap(ordinal);
            out.writeMapStart();
            writeItems(entries.numElements(), out, n -> {
                out.writeBytes(entries.keyArray().getUTF8String(n).getByteBuffer());
                value.write(entries.valueArray(), n, out);
            });
            out.writeMapEnd();
        };
    }

    private static void writeItems(int items, BinaryEncoder out, ItemWriter writer) throws IOException {
        out.setItemCount(items);
        for (int n = 0; n < items; n++) {
            out.startItem();
            writer.write(n);
        }
    }

    private static ValueWriter structWriter(StructType type, Schema schema) {
        FieldWriter[] fields = fieldWriters(type, schema.getFields());
        return (from, ordinal, out) -> {
            InternalRow struct = from.getStruct(ordinal, type.size());
            for (FieldWriter field : fields) {
                field.write(struct, out);
            }
        };
    }

    /** Returns which of the schema's types is null; a negative number if none is. */
    private static int nullIndex(Schema schema) {
        return schema.isNullable() && schema.isUnion() ? schema.getIndexNamed("null") : -1;
    }

    private static void require(boolean isMet, String otherwise, Object... values) {
        if (!isMet) {
            throw new IllegalArgumentException(String.format(otherwise, values));
        }
    }

    private interface FieldWriter {
        void write(InternalRow row, BinaryEncoder out) throws IOException;
    }

    private interface ValueWriter {
        void write(SpecializedGetters from, int ordinal, BinaryEncoder out) throws IOException;
    }

    private interface ItemWriter {
        void write(int number) throws IOException;
    }
}
