/* Tells what a topic holds of committed records: their number, how many texts occur more than once,
 * and the sum of the last number of each text. With "last", only the last record of each key counts.
 * Arguments: address of the brokers; topic; all or last. */
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class Committed {
    public static void main(String[] arguments) {
        Properties settings =
                Client.properties(arguments[0], Map.of("isolation.level", "read_committed"));
        Map<String, Integer> seen = new HashMap<>();
        Map<String, Long> last = new HashMap<>();
        long number = 0, sum = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(
                        settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> parts =
                    consumer.partitionsFor(arguments[1]).stream()
                            .map(one -> new TopicPartition(one.topic(), one.partition()))
                            .toList();
            consumer.assign(parts);
            consumer.seekToBeginning(parts);
            Map<TopicPartition, Long> ends = consumer.endOffsets(parts);
            while (parts.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(200))) {
                    String text = new String(one.value(), StandardCharsets.UTF_8);
                    long value = Long.parseLong(text.replaceAll("\\D+$", "").replaceAll("^.*\\D", ""));
                    String key = one.key() == null ? text : new String(one.key());
                    number++;
                    sum += value;
                    seen.merge(text, 1, Integer::sum);
                    last.put(key, value);
                }
            }
        }
        long twice = seen.values().stream().filter(n -> n > 1).count();
        long lasts = last.values().stream().mapToLong(Long::longValue).sum();
        System.out.println(
                number + " " + twice + " " + (arguments[2].equals("last") ? lasts : sum));
    }
}
