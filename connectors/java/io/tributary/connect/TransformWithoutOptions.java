package io.tributary.connect;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** A transform that has no options and holds nothing. */
public abstract class TransformWithoutOptions<R extends ConnectRecord<R>> implements Transformation<R> {
    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void configure(Map<String, ?> options) {
        // There are no options.
    }

    @Override
    public void close() {
        // Nothing is held.
    }
}
