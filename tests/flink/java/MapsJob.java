/* Maps of very different work, each two subtasks wide.
 * Arguments: tuples per second; the rounds of each map; tasks hold two maps where they are chained. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class MapsJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(2);
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(
                        number -> number,
                        Long.MAX_VALUE,
                        RateLimiterStrategy.perSecond(Double.parseDouble(arguments[0])),
                        Types.LONG);
        DataStream<Long> stream =
                env.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers");
        for (int i = 1; i < arguments.length; i++) {
            int rounds = Integer.parseInt(arguments[i]);
            stream = stream.rebalance()
                    .map(x -> x + work(rounds))
                    .name("Map " + i)
                    .map(x -> x)
                    .name("Map " + i + " on");
        }
        stream.rebalance().sinkTo(new DiscardingSink<>());
        env.execute("maps");
    }

    static long work(int rounds) {
        long x = 88172645463325252L;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x & 1;
    }
}
