import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.*;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public final class Orders {
    public static void main(String[] brokers) throws Exception {
        var env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(2000);
        var orders = KafkaSource.<String>builder()
                .setBootstrapServers(brokers[0]).setTopics("orders").setGroupId("pairs")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema()).build();
        var pairs = KafkaSink.<String>builder()
                .setBootstrapServers(brokers[0])
                .setRecordSerializer(KafkaRecordSerializationSchema.builder().setTopic("pairs")
                        .setValueSerializationSchema(new SimpleStringSchema()).build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("pairs")
                .setProperty("transaction.timeout.ms", "900000").build();
        env.fromSource(orders, WatermarkStrategy.noWatermarks(), "orders")
                .keyBy(order -> order.split(" ")[0])
                .reduce((last, next) -> next + "," + last.split(",")[0]).name("pair")
                .sinkTo(pairs).name("pairs");
        env.execute("orders");
    }
}
