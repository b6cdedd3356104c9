/* Creates topics, gives those that exist so many partitions, or deletes them if that is 0.
 * Arguments: address of the brokers; copies of each partition; number of partitions; topics. */
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;

public final class Topics {
    public static void main(String[] arguments) throws Exception {
        short copies = Short.parseShort(arguments[1]);
        int partitions = Integer.parseInt(arguments[2]);
        List<String> topics = Arrays.asList(arguments).subList(3, arguments.length);
        try (Admin admin = Admin.create(Client.properties(arguments[0]))) {
            if (partitions == 0) {
                admin.deleteTopics(topics).all().get();
                return;
            }
            Set<String> there = admin.listTopics().names().get();
            for (String topic : topics) {
                if (there.contains(topic)) {
                    var more = Map.of(topic, NewPartitions.increaseTo(partitions));
                    admin.createPartitions(more).all().get();
                } else {
                    var made = new NewTopic(topic, partitions, copies);
                    admin.createTopics(List.of(made)).all().get();
                }
            }
        }
    }
}
