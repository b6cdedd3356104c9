import java.util.Map;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Feed {
    public static void main(String[] brokers) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", brokers[0]);
        var text = new StringSerializer();
        try (var producer = new KafkaProducer<String, String>(settings, text, text)) {
            for (long i = 0; ; Thread.sleep(i++ % 50 == 0 ? 100 : 0)) {
                producer.send(new ProducerRecord<>("orders", "" + i, i % 100 + " " + i));
            }
        }
    }
}
