/* A source and maps in one chain. Arguments: tuples per second; the rounds of each map. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class ChainJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
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
            stream = stream.map(x -> x + NamelessJob.work(rounds)).name("map" + i);
        }
        stream.rebalance().sinkTo(new DiscardingSink<>());
        env.execute("chain");
    }
}
