/* A map that blocks for some time per number, as one that looks something up would.
 * Arguments: numbers per second, milliseconds per number, subtasks of the map. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class BlockingJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        RateLimiterStrategy rate =
                RateLimiterStrategy.perSecond(Double.parseDouble(arguments[0]));
        long millis = Long.parseLong(arguments[1]);
        env.fromSource(
                        new DataGeneratorSource<>(n -> n, Long.MAX_VALUE, rate, Types.LONG),
                        WatermarkStrategy.noWatermarks(),
                        "numbers")
                .setParallelism(1)
                .rebalance()
                .map(number -> {
                    Thread.sleep(millis);
                    return number;
                })
                .returns(Types.LONG)
                .setParallelism(Integer.parseInt(arguments[2]))
                .name("look up")
                .sinkTo(new DiscardingSink<>())
                .setParallelism(1)
                .name("out");
        env.execute("blocking");
    }
}
