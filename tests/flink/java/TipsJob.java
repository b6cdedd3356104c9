/* The driver with the most tips in each hour, as the HourlyTips exercise of Flink's training has it:
 * sums in windows by key, then the largest of all keys. Nothing has a uid, and only the source and
 * what tells the results have names.
 * Arguments: how many fares, how many per second, a folder for the results. */
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public final class TipsJob {
    private static final Duration HOUR = Duration.ofHours(1);
    private static final long EVERY_MS = 20_000, DRIVERS = 13;

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(500);
        WatermarkStrategy<Long> times =
                WatermarkStrategy.<Long>forMonotonousTimestamps()
                        .withTimestampAssigner((fare, before) -> fare * EVERY_MS);
        DataStream<Tuple3<Long, Long, Long>> sums =
                env.fromSource(
                                EventsJob.numbers(arguments[0], arguments[1]),
                                WatermarkStrategy.noWatermarks(),
                                "fares")
                        .assignTimestampsAndWatermarks(times)
                        .keyBy(fare -> fare % DRIVERS)
                        .window(TumblingEventTimeWindows.of(HOUR))
                        .process(new Sum())
                        .name("sums");
        sums.windowAll(TumblingEventTimeWindows.of(HOUR))
                .maxBy(2)
                .map(best -> best.f0 + " " + best.f1 + " " + best.f2)
                .sinkTo(EventsJob.files(arguments[2]));
        env.execute("Hourly Tips");
    }

    /** End of the hour, driver, and the sum of tips; no two sums of an hour are equal. */
    static final class Sum
            extends ProcessWindowFunction<Long, Tuple3<Long, Long, Long>, Long, TimeWindow> {
        @Override
        public void process(
                Long driver,
                Context context,
                Iterable<Long> fares,
                Collector<Tuple3<Long, Long, Long>> out) {
            long sum = 0;
            for (long fare : fares) {
                sum += (fare * 2654435761L >>> 16) % 500;
            }
            out.collect(Tuple3.of(context.window().getEnd(), driver, sum * DRIVERS + driver));
        }
    }
}
