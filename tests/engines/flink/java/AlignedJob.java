/* Two sources whose watermarks are aligned: an hour passes with every tuple of the one, a
 * millisecond with every tuple of the other, so that the first soon waits.
 * Argument: tuples per second of each. */
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class AlignedJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        env.setParallelism(1);
        double rate = Double.parseDouble(arguments[0]);
        source(env, "hours", rate, 3_600_000)
                .union(source(env, "milliseconds", rate, 1))
                .sinkTo(new DiscardingSink<>())
                .name("out");
        env.execute("aligned");
    }

    static DataStream<Long> source(
            StreamExecutionEnvironment env, String name, double rate, long millis) {
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(
                        number -> number * millis,
                        Long.MAX_VALUE,
                        RateLimiterStrategy.perSecond(rate),
                        Types.LONG);
        WatermarkStrategy<Long> aligned =
                WatermarkStrategy.<Long>forMonotonousTimestamps()
                        .withTimestampAssigner((number, before) -> number)
                        .withWatermarkAlignment(
                                "group", Duration.ofMillis(500), Duration.ofMillis(200));
        return env.fromSource(numbers, aligned, name);
    }
}
