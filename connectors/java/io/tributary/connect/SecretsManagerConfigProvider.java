package io.tributary.connect;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.provider.ConfigProvider;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.protocols.jsoncore.JsonNode;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.secretsmanager.SecretsManagerClient;

/**
 * Resolves {@code ${secretsmanager:name:key}} to the text that a JSON secret of AWS Secrets Manager holds under a key.
 *
 * <p>One parameter: {@code region}. Credentials are the default ones of the place where it runs. Connect never asks
 * for a value again: nothing restarts a connector because time has passed.
 */
public class SecretsManagerConfigProvider implements ConfigProvider {
    private SecretsManagerClient client;

    @Override
    public void configure(Map<String, ?> options) {
        Object region = options.get("region");
        if (region == null) {
            throw new ConfigException("region", null, "the region that the secrets are in");
        }
        client = SecretsManagerClient.builder()
                .region(Region.of(region.toString()))
                .httpClientBuilder(UrlConnectionHttpClient.builder())
                .build();
    }

    @Override
    public ConfigData get(String name) {
        return new ConfigData(entries(name));
    }

    @Override
    public ConfigData get(String name, Set<String> keys) {
        Map<String, String> entries = entries(name);
        if (!entries.keySet().containsAll(keys)) {
            // Name neither the secret's text nor its other keys, because this goes to a log.
            throw new ConfigException("The secret " + name + " lacks a text under one of the keys " + keys);
        }
        entries.keySet().retainAll(keys);
        return new ConfigData(entries);
    }

    @Override
    public void close() {
        if (client != null) {
            client.close();
        }
    }

    private Map<String, String> entries(String name) {
        String secret = client.getSecretValue(request -> request.secretId(name)).secretString();
        Map<String, String> entries = new HashMap<>();
        JsonNode.parser().parse(secret).asObject().forEach((key, value) -> {
            if (value.isString()) {
                entries.put(key, value.text());
            }
        });
        return entries;
    }
}
