/* What clients of the brokers need: their addresses, or the file that names them and more. */
import java.io.FileReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Properties;

final class Client {
    static Properties properties(String address) {
        Properties properties = new Properties();
        if (!address.startsWith("/")) {
            properties.setProperty("bootstrap.servers", address);
            return properties;
        }
        try (FileReader file = new FileReader(address)) {
            properties.load(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return properties;
    }

    static Properties properties(String address, Map<String, Object> more) {
        Properties properties = properties(address);
        properties.putAll(more);
        return properties;
    }
}
