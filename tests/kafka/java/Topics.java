/* Creates a topic.
 * Arguments: address of the broker; topic; number of partitions; settings, as in cleanup.policy=compact. */
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

public final class Topics {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int i = 3; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=");
            settings.put(pair[0], pair[1]);
        }
        NewTopic topic = new NewTopic(arguments[1], Integer.parseInt(arguments[2]), (short) 1);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.createTopics(List.of(topic.configs(settings))).all().get();
        }
    }
}
