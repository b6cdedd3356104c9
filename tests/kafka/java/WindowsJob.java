/* Orders of a topic: counted by key and second into a topic, exactly once; large ones into another.
 * Arguments: address of the brokers; records per second that a subtask reads at most, by default any;
 * seconds by which a partition may be read ahead of others, by default or if 0 any; orders that the
 * source makes of each record, by default one. */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public final class WindowsJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        double most = arguments.length > 1 ? Double.parseDouble(arguments[1]) : 1e9;
        WatermarkStrategy<String> times =
                WatermarkStrategy.<String>forMonotonousTimestamps()
                        .withTimestampAssigner((text, before) -> time(text));
        long seconds = arguments.length > 2 ? Long.parseLong(arguments[2]) : 0;
        int copies = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 1;
        if (seconds > 0) {
            Duration ahead = Duration.ofSeconds(seconds);
            times = times.withWatermarkAlignment("orders", ahead);
        }
        DataStream<Tuple3<String, Long, Long>> orders =
                env.fromSource(source(arguments[0], "orders", copies), times, "orders")
                        .map(new Parse(most))
                        .name("parse");
        orders.filter(one -> !one.f0.equals("end"))
                .name("orders only")
                .keyBy(one -> one.f0)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(1)))
                .aggregate(new Count(), new Tell())
                .name("count")
                .sinkTo(sink(arguments[0], "windows", DeliveryGuarantee.EXACTLY_ONCE))
                .name("windows");
        orders.filter(one -> one.f1 >= 95)
                .name("large")
                .map(one -> one.f0 + " " + one.f2 + " " + one.f1)
                .name("told")
                .sinkTo(sink(arguments[0], "large", DeliveryGuarantee.AT_LEAST_ONCE))
                .name("large orders");
        env.execute("windows of orders");
    }

    static KafkaSource<String> source(String broker, String topic, int copies) {
        return KafkaSource.<String>builder()
                .setProperties(Client.properties(broker))
                .setTopics(topic)
                .setGroupId("streamplace-" + topic)
                .setProperty("partition.discovery.interval.ms", "2000")
                // Lag is what was known at the last fetch, and falls until the next one.
                .setProperty("max.partition.fetch.bytes", "8192")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new Copies(copies))
                .build();
    }

    static KafkaSink<String> sink(String broker, String topic, DeliveryGuarantee guarantee) {
        return KafkaSink.<String>builder()
                .setBootstrapServers(
                        Client.properties(broker).getProperty("bootstrap.servers"))
                .setKafkaProducerConfig(Client.properties(broker))
                .setRecordSerializer(
                        KafkaRecordSerializationSchema.builder()
                                .setTopic(topic)
                                .setValueSerializationSchema(new SimpleStringSchema())
                                .build())
                .setDeliveryGuarantee(guarantee)
                .setTransactionalIdPrefix("streamplace-" + topic)
                .setProperty("transaction.timeout.ms", "900000")
                .build();
    }

    static long time(String text) {
        return Long.parseLong(text.substring(text.lastIndexOf(':') + 1, text.length() - 1));
    }

    /** Text of each record, several times. */
    static final class Copies extends SimpleStringSchema {
        private final int number;

        Copies(int number) {
            this.number = number;
        }

        @Override
        public void deserialize(byte[] record, Collector<String> out) {
            String text = deserialize(record);
            for (int i = 0; i < number; i++) {
                out.collect(text);
            }
        }
    }

    static final class Parse extends RichMapFunction<String, Tuple3<String, Long, Long>> {
        private final long pause;
        private transient ObjectMapper mapper;

        /** Reads so many records per second at most. */
        Parse(double most) {
            pause = (long) (1e9 / most);
        }

        @Override
        public void open(OpenContext context) {
            mapper = new ObjectMapper();
        }

        @Override
        public Tuple3<String, Long, Long> map(String text) throws Exception {
            if (pause > 1) {
                LockSupport.parkNanos(pause);
            }
            JsonNode tree = mapper.readTree(text);
            return Tuple3.of(
                    tree.get("key").asText(), tree.get("amount").asLong(), tree.get("id").asLong());
        }
    }

    static final class Count implements AggregateFunction<Tuple3<String, Long, Long>, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Tuple3<String, Long, Long> order, Long number) {
            return number + 1;
        }

        @Override
        public Long getResult(Long number) {
            return number;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    static final class Tell extends ProcessWindowFunction<Long, String, String, TimeWindow> {
        @Override
        public void process(
                String key, Context context, Iterable<Long> counts, Collector<String> out) {
            for (Long number : counts) {
                out.collect(key + " " + context.window().getStart() + " " + number);
            }
        }
    }
}
