package io.tributary.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Takes a JSON document apart into a schema and a payload: {@code {"schema":…,"payload":…}}, as Kafka Connect's
 * JsonConverter writes it, or as any other writer of JSON does.
 *
 * <p>Nine tenths of such a document are its schema, the same bytes in every event. So a document is compared with the
 * starts of those before it, up to the payload, and only a new start is parsed.
 */
public final class SchemaAndPayload implements Serializable {
    private static final long serialVersionUID = 1;
    private static final int MOST_STARTS = 16;
    private static final int MOST_SCHEMAS = 64;
    private static final byte[] PAYLOAD_NAME = "\"payload\"".getBytes(StandardCharsets.US_ASCII);
    private static final UTF8String NULL = UTF8String.fromString("null");
    private static final ObjectMapper SORTED = JsonMapper.builder()
            .enable(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS)
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    private final Map<String, Integer> known = new HashMap<>();
    private transient volatile Start[] starts;
    private transient volatile Map<ByteBuffer, Schema> schemas;

    private SchemaAndPayload(List<String> known) {
        for (int place = 0; place < known.size(); place++) {
            this.known.putIfAbsent(canonical(known.get(place)), place);
        }
    }

    /**
     * Returns the column {@code struct<known int, schema string, payload string>}.
     *
     * <p>It is null where the text is no JSON object. {@code payload} is the document's payload as it is written, and
     * null where it is JSON's null; where the document is not a schema and a payload, or a payload alone, it is all of
     * the text. {@code schema} is the schema in its canonical form: parsed, and written without white space and with
     * sorted names. It is null where the document has none. {@code known} is its place among the schemas that are
     * given.
     */
    public static Column read(Column text, List<String> known) {
        StructType result = new StructType()
                .add("known", DataTypes.IntegerType)
                .add("schema", DataTypes.StringType)
                .add("payload", DataTypes.StringType);
        return Expressions.call(new SchemaAndPayload(known), "find", result, text);
    }

    /** Returns the schema in its canonical form; a text that is no JSON, as it is. */
    public static String canonical(String schema) {
        try {
            return SORTED.writeValueAsString(SORTED.readValue(schema, Object.class));
        } catch (JsonProcessingException notJson) {
            return schema;
        }
    }

    /** Spark's generated code calls this for each row. */
    public InternalRow find(UTF8String text) {
        byte[] bytes = text.getBytes();
        InternalRow found = afterKnownStart(bytes);
        if (found != null) {
            return found;
        }
        int brace = afterSpace(bytes, 0);
        if (brace == bytes.length || bytes[brace] != '{') {
            return null;
        }
        if (beginsWithAnotherName(bytes, brace + 1)) {
            return row(null, text);
        }
        return parsed(text, bytes);
    }

    private InternalRow afterKnownStart(byte[] bytes) {
        Start[] found = starts;
        if (found != null) {
            for (Start start : found) {
                if (start.isOf(bytes)) {
                    return start.rest(bytes);
                }
            }
        }
        return null;
    }

    /** Returns whether the first name is certainly neither of the two. */
    private static boolean beginsWithAnotherName(byte[] bytes, int from) {
        int quote = afterSpace(bytes, from);
        if (quote + 1 >= bytes.length || bytes[quote] != '"') {
            return false;
        }
        byte first = bytes[quote + 1];
        return first != 's' && first != 'p' && first != '\\';
    }

    private InternalRow parsed(UTF8String text, byte[] bytes) {
        try (PayloadParser parser = PayloadParser.of(bytes)) {
            UTF8String schema = null;
            UTF8String payload = null;
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                boolean isFirst = schema == null && payload == null;
                parser.nextToken();
                if (name.equals("payload")) {
                    payload = parser.jsonOfValue();
                } else if (name.equals("schema")) {
                    schema = parser.jsonOfValue();
                    if (isFirst) {
                        Start start = startOf(bytes, schema, parser.place());
                        if (start != null) {
                            remember(start);
                            return start.rest(bytes);
                        }
                    }
                } else {
                    return row(null, text);
                }
            }
            boolean isObject = parser.currentToken() == JsonToken.END_OBJECT && parser.nextToken() == null;
            if (!isObject || !Utf8.isWellFormed(bytes)) {
                return null;
            }
            boolean hasSchema = schema != null && !schema.equals(NULL);
            return payload == null ? row(null, text) : row(hasSchema ? schema(schema) : null, payload);
        } catch (IOException notJson) {
            return null;
        }
    }

    /** Returns the start of a document with that schema, up to its payload; null if the start does not show it. */
    private Start startOf(byte[] bytes, UTF8String schema, int afterSchema) {
        int comma = afterSpace(bytes, afterSchema);
        int name = afterSpace(bytes, comma + 1);
        int colon = afterSpace(bytes, name + PAYLOAD_NAME.length);
        int payload = afterSpace(bytes, colon + 1);
        boolean isPayloadNext = payload < bytes.length
                && bytes[comma] == ','
                && bytes[colon] == ':'
                && Arrays.equals(bytes, name, name + PAYLOAD_NAME.length, PAYLOAD_NAME, 0, PAYLOAD_NAME.length);
        Schema found = isPayloadNext ? schema(schema) : null;
        if (found == null || !found.isStruct) {
            return null;
        }
        byte[] start = Arrays.copyOf(bytes, payload);
        return Utf8.isWellFormed(start) ? new Start(start, found) : null;
    }

    private synchronized void remember(Start start) {
        Start[] before = starts == null ? new Start[0] : starts;
        if (Stream.of(before).anyMatch(other -> Arrays.equals(other.bytes, start.bytes))) {
            return;
        }
        Start[] after = Arrays.copyOf(before, Math.min(before.length + 1, MOST_STARTS));
        System.arraycopy(before, 0, after, 1, after.length - 1);
        after[0] = start;
        starts = after;
    }

    private Schema schema(UTF8String text) {
        Map<ByteBuffer, Schema> remembered = schemas;
        if (remembered == null) {
            remembered = new ConcurrentHashMap<>();
            schemas = remembered;
        }
        ByteBuffer bytes = ByteBuffer.wrap(text.getBytes());
        Schema found = remembered.get(bytes);
        if (found == null) {
            if (remembered.size() >= MOST_SCHEMAS) {
                remembered.clear();
            }
            String canonical = canonical(text.toString());
            found = new Schema(known.get(canonical), canonical);
            remembered.put(bytes, found);
        }
        return found;
    }

    private static InternalRow row(Schema schema, UTF8String payload) {
        UTF8String value = NULL.equals(payload) ? null : payload;
        return new GenericInternalRow(
                schema == null
                        ? new Object[] {null, null, value}
                        : new Object[] {schema.known, schema.canonical, value});
    }

    private static int afterSpace(byte[] bytes, int from) {
        int at = from;
        while (at < bytes.length && isSpace(bytes[at])) {
            at++;
        }
        return at;
    }

    private static boolean isSpace(byte found) {
        return found == ' ' || found == '\n' || found == '\r' || found == '\t';
    }

    /** A schema in its canonical form, its place among those that are known, and whether it is of a Connect struct. */
    private static final class Schema {
        final Integer known;
        final UTF8String canonical;
        final boolean isStruct;

        Schema(Integer known, String canonical) {
            this.known = known;
            this.canonical = UTF8String.fromString(canonical);
            this.isStruct = isStruct(canonical);
        }

        private static boolean isStruct(String canonical) {
            try {
                JsonNode found = SORTED.readTree(canonical);
                return found.path("type").asText().equals("struct")
                        && found.path("fields").isArray();
            } catch (JsonProcessingException notJson) {
                return false;
            }
        }
    }

    /** The bytes of a document up to its payload. */
    private static final class Start {
        final byte[] bytes;
        final Schema schema;

        Start(byte[] bytes, Schema schema) {
            this.bytes = bytes;
            this.schema = schema;
        }

        boolean isOf(byte[] document) {
            return document.length > bytes.length && Arrays.equals(document, 0, bytes.length, bytes, 0, bytes.length);
        }

        /** What the document has after the start is its payload, which its reader parses, and a brace. */
        InternalRow rest(byte[] document) {
            int end = document.length - 1;
            while (end > bytes.length && isSpace(document[end])) {
                end--;
            }
            if (document[end] != '}') {
                return null;
            }
            int start = bytes.length;
            while (end > start && isSpace(document[end - 1])) {
                end--;
            }
            return row(schema, UTF8String.fromAddress(document, Platform.BYTE_ARRAY_OFFSET + start, end - start));
        }
    }
}
