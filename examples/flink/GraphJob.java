/* Runs a stream graph given as JSON: its rates, selectivities, payloads and work are known. */
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.operators.SlotSharingGroup;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

public final class GraphJob {
    static final TypeInformation<byte[]> BYTES = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
    static final int HEAP_MB = 8;

    public static void main(String[] arguments) throws Exception {
        JsonNode graph = new ObjectMapper().readTree(arguments[0]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        if (graph.path("restart").asBoolean(false)) {
            Configuration restart = new Configuration();
            restart.setString("restart-strategy.type", "fixed-delay");
            restart.setString("restart-strategy.fixed-delay.attempts", "100");
            restart.setString("restart-strategy.fixed-delay.delay", "200 ms");
            env.configure(restart);
        }
        if (!graph.path("chain").asBoolean(false)) {
            env.disableOperatorChaining();
        }
        Map<String, SingleOutputStreamOperator<byte[]>> done = new HashMap<>();
        for (JsonNode operator : graph.get("operators")) { // in topological order
            String name = operator.get("name").asText();
            DataStream<byte[]> input = null;
            List<Double> selectivities = new ArrayList<>();
            for (JsonNode stream : graph.path("streams")) {
                if (stream.get("from").asText().equals(name)) {
                    selectivities.add(stream.path("selectivity").asDouble(1));
                }
                if (stream.get("to").asText().equals(name)) {
                    DataStream<byte[]> one = output(graph, stream, done);
                    input = input == null ? one : input.union(one);
                }
            }
            SingleOutputStreamOperator<byte[]> made =
                    input == null ? source(env, operator) : input.process(new Work(operator, selectivities));
            if (operator.has("cores")) {
                made.slotSharingGroup(group(name, operator.get("cores").asDouble()));
            }
            done.put(name, made.name(name).setParallelism(operator.path("parallelism").asInt(1)));
        }
        env.execute(graph.path("name").asText("graph"));
    }

    /** A group of one operator, which asks for so many cores; for 0, as much as any slot has. */
    static SlotSharingGroup group(String name, double cores) {
        SlotSharingGroup.Builder group = SlotSharingGroup.newBuilder(name);
        return (cores > 0 ? group.setCpuCores(cores).setTaskHeapMemoryMB(HEAP_MB) : group).build();
    }

    static SingleOutputStreamOperator<byte[]> source(StreamExecutionEnvironment env, JsonNode operator) {
        int payload = operator.path("payload").asInt(), rounds = operator.path("rounds").asInt();
        DataGeneratorSource<byte[]> source =
                new DataGeneratorSource<>(
                        number -> bytes(payload, work(rounds)),
                        operator.path("records").asLong(Long.MAX_VALUE),
                        RateLimiterStrategy.perSecond(operator.get("rate").asDouble()),
                        BYTES);
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), operator.get("name").asText());
    }

    static DataStream<byte[]> output(
            JsonNode graph, JsonNode stream, Map<String, SingleOutputStreamOperator<byte[]>> done) {
        String from = stream.get("from").asText();
        int index = 0;
        for (JsonNode other : graph.get("streams")) {
            if (other == stream) {
                break;
            }
            index += other.get("from").asText().equals(from) ? 1 : 0;
        }
        boolean first = index == 0 || isSource(graph, from);
        DataStream<byte[]> output = first ? done.get(from) : done.get(from).getSideOutput(tag(index));
        return stream.path("partitioning").asText("").equals("rebalance") ? output.rebalance() : output;
    }

    static boolean isSource(JsonNode graph, String name) {
        for (JsonNode stream : graph.get("streams")) {
            if (stream.get("to").asText().equals(name)) {
                return false;
            }
        }
        return true;
    }

    static OutputTag<byte[]> tag(int index) {
        return new OutputTag<>("out-" + index, BYTES);
    }

    static long work(int rounds) {
        long x = 88172645463325252L;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    static byte[] bytes(int size, long seed) {
        byte[] made = new byte[size];
        if (size > 0) {
            made[0] = (byte) seed;
        }
        return made;
    }

    /** Spends the work on every tuple and emits what each stream's selectivity asks for. */
    static final class Work extends ProcessFunction<byte[], byte[]> {
        private final int payload, rounds;
        private final double[] selectivity, owed;

        Work(JsonNode operator, List<Double> selectivities) {
            payload = operator.path("payload").asInt();
            rounds = operator.path("rounds").asInt();
            selectivity = selectivities.stream().mapToDouble(Double::doubleValue).toArray();
            owed = new double[selectivity.length];
        }

        @Override
        public void processElement(byte[] tuple, Context context, Collector<byte[]> out) {
            long seed = work(rounds);
            for (int i = 0; i < owed.length; i++) {
                for (owed[i] += selectivity[i]; owed[i] >= 1; owed[i]--) {
                    if (i == 0) {
                        out.collect(bytes(payload, seed));
                    } else {
                        context.output(tag(i), bytes(payload, seed));
                    }
                }
            }
        }
    }
}
