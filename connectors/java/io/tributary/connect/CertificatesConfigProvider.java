package io.tributary.connect;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.provider.ConfigProvider;

/**
 * Resolves {@code ${certificates:NAME:KEY}} to a file with the certificates that the plugin's jar holds as NAME.pem.
 *
 * <p>A worker of MSK Connect has no files of its own, and nobody knows where it unpacks a plugin. So the files are
 * written where Java keeps temporary files, once in a JVM. The keys are {@code pem} and {@code truststore}, which give
 * paths, and {@code password}, the one of the trust store, which protects nothing.
 */
public class CertificatesConfigProvider implements ConfigProvider {
    private static final String PASSWORD = "changeit";
    private static final Map<String, Map<String, String>> WRITTEN = new HashMap<>();

    @Override
    public void configure(Map<String, ?> options) {
        // There is nothing to configure.
    }

    @Override
    public ConfigData get(String name) {
        return new ConfigData(entries(name));
    }

    @Override
    public ConfigData get(String name, Set<String> keys) {
        Map<String, String> entries = new HashMap<>(entries(name));
        if (!entries.keySet().containsAll(keys)) {
            throw new ConfigException("Certificates have only the keys " + entries.keySet() + ", not all of " + keys);
        }
        entries.keySet().retainAll(keys);
        return new ConfigData(entries);
    }

    @Override
    public void close() {
        // The files are for the connections, which may be opened at any time.
    }

    private static Map<String, String> entries(String name) {
        synchronized (WRITTEN) {
            return WRITTEN.computeIfAbsent(name, CertificatesConfigProvider::write);
        }
    }

    private static Map<String, String> write(String name) {
        try (InputStream resource = CertificatesConfigProvider.class.getResourceAsStream("/" + name + ".pem")) {
            if (resource == null) {
                throw new ConfigException("The plugin has no certificates " + name);
            }
            Path pem = temporary(name, ".pem");
            Files.write(pem, resource.readAllBytes());
            Path trustStore = temporary(name, ".p12");
            writeTrustStore(pem, trustStore);
            return Map.of("pem", pem.toString(), "truststore", trustStore.toString(), "password", PASSWORD);
        } catch (IOException | GeneralSecurityException error) {
            throw new ConfigException("The certificates " + name + " cannot be written: " + error);
        }
    }

    private static Path temporary(String name, String suffix) throws IOException {
        Path file = Files.createTempFile("tributary-" + name + "-", suffix);
        file.toFile().deleteOnExit();
        return file;
    }

    private static void writeTrustStore(Path pem, Path trustStore) throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream certificates = Files.newInputStream(pem)) {
            int number = 0;
            for (Certificate each : CertificateFactory.getInstance("X.509").generateCertificates(certificates)) {
                store.setCertificateEntry("root-" + number++, each);
            }
        }
        try (OutputStream out = Files.newOutputStream(trustStore)) {
            store.store(out, PASSWORD.toCharArray());
        }
    }
}
