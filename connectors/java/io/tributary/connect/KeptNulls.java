package io.tributary.connect;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/**
 * Keeps NULL from becoming a column's default in Avro.
 *
 * <p>The Avro converters of AWS Glue, Confluent and Apicurio read a row with {@link Struct#get}, which gives the
 * default of a field without a value, and none has an option against it. So this transform takes the defaults from
 * the schemas of all optional fields. A field that cannot be NULL keeps its default.
 */
public class KeptNulls<R extends ConnectRecord<R>> extends TransformWithoutOptions<R> {
    private static final int MOST_KEPT = 1_000;

    // Debezium uses the same schema object for all events of a table, until the table's definition changes.
    private final Map<Schema, Schema> kept = Collections.synchronizedMap(new IdentityHashMap<>());

    @Override
    public R apply(R record) {
        Schema keySchema = of(record.keySchema());
        Schema valueSchema = of(record.valueSchema());
        if (keySchema == record.keySchema() && valueSchema == record.valueSchema()) {
            return record;
        }
        return record.newRecord(
                record.topic(),
                record.kafkaPartition(),
                keySchema,
                copied(record.key(), keySchema),
                valueSchema,
                copied(record.value(), valueSchema),
                record.timestamp(),
                record.headers());
    }

    /** Returns the schema without defaults of optional fields. It is the same object if there are none. */
    private Schema of(Schema schema) {
        if (schema == null) {
            return null;
        }
        Schema found = kept.get(schema);
        if (found == null) {
            if (kept.size() >= MOST_KEPT) {
                kept.clear();
            }
            found = hasSuchDefault(schema) ? without(schema) : schema;
            kept.put(schema, found);
        }
        return found;
    }

    private static boolean hasSuchDefault(Schema schema) {
        if (schema.isOptional() && schema.defaultValue() != null) {
            return true;
        }
        return switch (schema.type()) {
            case STRUCT -> schema.fields().stream().anyMatch(field -> hasSuchDefault(field.schema()));
            case ARRAY -> hasSuchDefault(schema.valueSchema());
            case MAP -> hasSuchDefault(schema.keySchema()) || hasSuchDefault(schema.valueSchema());
            default -> false;
        };
    }

    private static Schema without(Schema schema) {
        if (!hasSuchDefault(schema)) {
            return schema;
        }
        SchemaBuilder built =
                switch (schema.type()) {
                    case ARRAY -> SchemaBuilder.array(without(schema.valueSchema()));
                    case MAP -> SchemaBuilder.map(without(schema.keySchema()), without(schema.valueSchema()));
                    default -> SchemaBuilder.type(schema.type());
                };
        built.name(schema.name()).version(schema.version()).doc(schema.doc());
        if (schema.parameters() != null) {
            built.parameters(schema.parameters());
        }
        if (schema.type() == Schema.Type.STRUCT) {
            schema.fields().forEach(field -> built.field(field.name(), without(field.schema())));
        }
        if (schema.isOptional()) {
            built.optional();
        } else if (schema.defaultValue() != null) {
            built.defaultValue(copied(schema.defaultValue(), built));
        }
        return built.build();
    }

    /** Returns the value as one of the schema, in which only schemas differ. */
    private static Object copied(Object value, Schema schema) {
        if (value instanceof Struct from && from.schema() != schema) {
            Struct to = new Struct(schema);
            for (Field field : schema.fields()) {
                to.put(field, copied(from.getWithoutDefault(field.name()), field.schema()));
            }
            return to;
        }
        if (value instanceof List<?> items && schema.type() == Schema.Type.ARRAY) {
            List<Object> copy = new ArrayList<>(items.size());
            items.forEach(item -> copy.add(copied(item, schema.valueSchema())));
            return copy;
        }
        if (value instanceof Map<?, ?> entries && schema.type() == Schema.Type.MAP) {
            Map<Object, Object> copy = new HashMap<>();
            entries.forEach(
                    (key, item) -> copy.put(copied(key, schema.keySchema()), copied(item, schema.valueSchema())));
            return copy;
        }
        return value;
    }

    @Override
    public void close() {
        kept.clear();
    }
}
