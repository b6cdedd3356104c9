/* Writes orders, or payments of them, to a topic: one record per millisecond of event time. Prints
 * how many it has written when as many are written as shall be, or a line comes from standard input.
 * Arguments: address of the brokers; topic; number of the first record; how many; records per second,
 * 0 for as many as possible; shares of the partitions, as in 4:2:1:1; number of keys; end, to close
 * all windows by a record per partition that is far ahead. */
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Feeder {
    static final long AHEAD = 1L << 40;

    /** Milliseconds for which it waits for a broker that is away. */
    static final int PATIENCE = 900_000;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        long first = Long.parseLong(arguments[2]);
        long number = Long.parseLong(arguments[3]);
        double rate = Double.parseDouble(arguments[4]);
        String[] shares = arguments[5].split(":");
        int keys = Integer.parseInt(arguments[6]);
        int[] turn = turns(shares);
        Map<String, Object> own =
                Map.of(
                        "linger.ms", 5,
                        "acks", "all",
                        "delivery.timeout.ms", PATIENCE,
                        "max.block.ms", PATIENCE);
        Properties settings = Client.properties(arguments[0], own);
        long written = 0;
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            long began = System.nanoTime();
            for (; written < number; written++) {
                if (rate > 0 && written % 50 == 0) {
                    long early = (long) (1e9 * written / rate) - (System.nanoTime() - began);
                    if (early > 0) {
                        Thread.sleep(early / 1_000_000);
                    }
                    if (System.in.available() > 0) {
                        break;
                    }
                }
                long id = first + written;
                send(producer, topic, turn[(int) (id % turn.length)], id, "k" + id % keys, id);
            }
            for (int p = 0; arguments[7].equals("end") && p < shares.length; p++) {
                send(producer, topic, p, -1, "end", first + written + AHEAD);
            }
        }
        System.out.println(written);
    }

    /** Partitions of one turn of records. */
    static int[] turns(String[] shares) {
        int whole = 0;
        for (String share : shares) {
            whole += Integer.parseInt(share);
        }
        int[] turn = new int[whole];
        for (int p = 0, i = 0; p < shares.length; p++) {
            for (int k = Integer.parseInt(shares[p]); k > 0; k--) {
                turn[i++] = p;
            }
        }
        return turn;
    }

    static void send(
            KafkaProducer<byte[], byte[]> producer,
            String topic,
            int partition,
            long id,
            String key,
            long time) {
        String text =
                String.format(
                        "{\"id\":%d,\"key\":\"%s\",\"amount\":%d,\"time\":%d}",
                        id, key, Math.floorMod(id, 100), time);
        producer.send(
                new ProducerRecord<>(topic, partition, null, text.getBytes(StandardCharsets.UTF_8)),
                (where, error) -> {
                    if (error != null) {
                        error.printStackTrace();
                        Runtime.getRuntime().halt(1);
                    }
                });
    }
}
