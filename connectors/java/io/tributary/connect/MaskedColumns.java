package io.tributary.connect;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Replaces the values of columns in change events: by a constant text, or by their HMAC-SHA256.
 *
 * <p>Debezium's own {@code column.mask.*} options are not enough (io.debezium.relational.mapping.MaskStrings). They pass
 * on a column of another type than text without a word, and hash the placeholder of a value that is not sent because
 * it has not changed. The salt is a part of an option's name, which no config provider can fill in.
 *
 * <p>Options:
 *
 * <ul>
 *   <li>{@code mask.TOPIC}, {@code hash.TOPIC}: the columns of the topic's table, as a list. A column whose name ends
 *       with a question mark may be missing.
 *   <li>{@code key.TOPIC}: columns that must not be part of the key, because the connector leaves them out.
 *   <li>{@code salt.password}: the key of the HMAC. Debezium logs all options of a task, but not the values of those
 *       whose names end like this (Configuration.PASSWORD_PATTERN).
 * </ul>
 *
 * <p>It fails rather than letting a value pass: if a column is missing, which may have another name now, or is part of
 * the key, or if the record is no change event.
 */
public class MaskedColumns<R extends ConnectRecord<R>> implements Transformation<R> {
    public static final String MASK = "*****";

    private static final String SALT = "salt.password";
    private static final String PLACEHOLDER = "__debezium_unavailable_value";
    private static final byte[] PLACEHOLDER_BYTES = PLACEHOLDER.getBytes(StandardCharsets.UTF_8);
    private static final Set<Object> PLACEHOLDER_TEXTS = Set.of(
            PLACEHOLDER,
            UUID.nameUUIDFromBytes(PLACEHOLDER_BYTES).toString(),
            "{\"" + PLACEHOLDER + "\":\"" + PLACEHOLDER + "\"}");
    private static final Set<String> ROWS = Set.of("before", "after");

    private final Map<String, Rules> rules = new HashMap<>();
    private Mac mac;

    /** The rules for the columns of one topic. The last schema that came is kept with its replacement. */
    private static final class Rules {
        final Set<String> masked = new HashSet<>();
        final Set<String> hashed = new HashSet<>();
        final Set<String> required = new HashSet<>();
        final Set<String> keyless = new HashSet<>();
        Schema came;
        Schema becomes;
    }

    @Override
    public R apply(R record) {
        Rules ofTopic = rules.get(record.topic());
        if (ofTopic == null) {
            return record;
        }
        checkKey(record, ofTopic);
        if (record.value() == null) {
            return record;
        }
        if (!(record.value() instanceof Struct envelope) || envelope.schema().field("after") == null) {
            throw new DataException("Columns of " + record.topic() + " are masked, but a record is no change event");
        }
        if (envelope.schema() != ofTopic.came) {
            ofTopic.becomes = replacement(record.topic(), envelope.schema(), ofTopic);
            ofTopic.came = envelope.schema();
        }
        Struct masked = new Struct(ofTopic.becomes);
        for (Field field : envelope.schema().fields()) {
            Object value = envelope.get(field);
            Field place = ofTopic.becomes.field(field.name());
            masked.put(place, ROWS.contains(field.name()) ? row((Struct) value, place.schema(), ofTopic) : value);
        }
        return record.newRecord(
                record.topic(),
                record.kafkaPartition(),
                record.keySchema(),
                record.key(),
                ofTopic.becomes,
                masked,
                record.timestamp(),
                record.headers());
    }

    private void checkKey(R record, Rules ofTopic) {
        if (record.key() == null) {
            return;
        }
        if (!(record.key() instanceof Struct key)) {
            throw new DataException("Columns of " + record.topic() + " are masked, but its key is no row");
        }
        for (Field field : key.schema().fields()) {
            if (ofTopic.keyless.contains(field.name())) {
                throw new DataException("The column " + field.name() + " is part of the key of " + record.topic()
                        + ", so it cannot be left out, masked or hashed");
            }
        }
    }

    private static Schema replacement(String topic, Schema envelope, Rules ofTopic) {
        SchemaBuilder becomes = copied(envelope);
        for (Field field : envelope.fields()) {
            boolean isRow = ROWS.contains(field.name());
            becomes.field(field.name(), isRow ? replacementOfRow(topic, field.schema(), ofTopic) : field.schema());
        }
        return becomes.build();
    }

    private static Schema replacementOfRow(String topic, Schema row, Rules ofTopic) {
        for (String column : ofTopic.required) {
            if (row.field(column) == null) {
                throw new DataException("The column " + column + " of " + topic + " is to be masked or hashed, but it"
                        + " is missing. If it has another name now, add that name to the lake file, and write the old"
                        + " one as \"" + column + "?\", which may be missing");
            }
        }
        SchemaBuilder becomes = copied(row);
        for (Field field : row.fields()) {
            boolean isText = ofTopic.masked.contains(field.name()) || ofTopic.hashed.contains(field.name());
            becomes.field(field.name(), isText ? Schema.OPTIONAL_STRING_SCHEMA : field.schema());
        }
        return becomes.build();
    }

    private static SchemaBuilder copied(Schema schema) {
        SchemaBuilder copy = SchemaBuilder.struct()
                .name(schema.name())
                .version(schema.version())
                .doc(schema.doc());
        if (schema.parameters() != null) {
            copy.parameters(schema.parameters());
        }
        return schema.isOptional() ? copy.optional() : copy;
    }

    private Struct row(Struct row, Schema becomes, Rules ofTopic) {
        if (row == null) {
            return null;
        }
        Struct masked = new Struct(becomes);
        for (Field field : row.schema().fields()) {
            Field place = becomes.field(field.name());
            if (ofTopic.masked.contains(field.name())) {
                masked.put(place, MASK);
            } else if (ofTopic.hashed.contains(field.name())) {
                masked.put(place, hash(row.getWithoutDefault(field.name())));
            } else {
                // Not get(), which turns an explicit NULL into the column's default.
                masked.put(place, row.getWithoutDefault(field.name()));
            }
        }
        return masked;
    }

    private String hash(Object value) {
        if (value == null) {
            return null;
        }
        if (isPlaceholder(value)) {
            return PLACEHOLDER;
        }
        byte[] bytes = bytes(value);
        return HexFormat.of()
                .formatHex(mac.doFinal(bytes == null ? value.toString().getBytes(StandardCharsets.UTF_8) : bytes));
    }

    /** Tells whether the value stands for one that is not sent, because it has not changed. */
    private static boolean isPlaceholder(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.size() == 1 && map.containsKey(PLACEHOLDER);
        }
        if (value instanceof List<?> list) {
            return list.size() == 1 ? isPlaceholder(list.get(0)) : isPlaceholderInNumbers(list);
        }
        byte[] bytes = bytes(value);
        return bytes == null ? PLACEHOLDER_TEXTS.contains(value) : java.util.Arrays.equals(bytes, PLACEHOLDER_BYTES);
    }

    private static boolean isPlaceholderInNumbers(List<?> list) {
        if (list.size() != PLACEHOLDER_BYTES.length) {
            return false;
        }
        for (int place = 0; place < PLACEHOLDER_BYTES.length; place++) {
            if (!(list.get(place) instanceof Number number) || number.longValue() != PLACEHOLDER_BYTES[place]) {
                return false;
            }
        }
        return true;
    }

    private static byte[] bytes(Object value) {
        if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return bytes;
        }
        return value instanceof byte[] bytes ? bytes : null;
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define(SALT, ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.HIGH, "Key of the HMAC");
    }

    @Override
    public void configure(Map<String, ?> options) {
        rules.clear();
        for (Map.Entry<String, ?> option : options.entrySet()) {
            String[] parts = option.getKey().split("\\.", 2);
            Collection<String> names = List.of(String.valueOf(option.getValue()).split(","));
            switch (parts[0]) {
                case "mask" -> add(parts[1], names, true);
                case "hash" -> add(parts[1], names, false);
                case "key" -> rules(parts[1]).keyless.addAll(names);
                default -> {
                    // The salt, and options that Connect itself reads.
                }
            }
        }
        if (rules.values().stream().anyMatch(ofTopic -> !ofTopic.hashed.isEmpty())) {
            Password salt = (Password) config().parse(options).get(SALT);
            mac = mac(salt.value());
        }
    }

    private void add(String topic, Collection<String> names, boolean isMask) {
        Rules ofTopic = rules(topic);
        for (String name : names) {
            String column = name.endsWith("?") ? name.substring(0, name.length() - 1) : name;
            (isMask ? ofTopic.masked : ofTopic.hashed).add(column);
            ofTopic.keyless.add(column);
            if (column.equals(name)) {
                ofTopic.required.add(column);
            }
        }
    }

    private Rules rules(String topic) {
        return rules.computeIfAbsent(topic, ignored -> new Rules());
    }

    private static Mac mac(String salt) {
        // A placeholder is still there if the worker has no such config provider.
        if (salt.isBlank() || salt.startsWith("${")) {
            throw new ConfigException("The salt of hashed columns is missing");
        }
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(salt.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
            return mac;
        } catch (GeneralSecurityException error) {
            throw new ConfigException("This Java has no HMAC-SHA256: " + error.getMessage());
        }
    }

    @Override
    public void close() {
        rules.clear();
    }
}
