/* Tells, in a file per kind, what adds up only if no tuple and no state is lost or doubled: how often
 * a key was seen against how often it must have been, and the tuples of every window. No operator
 * has a uid, and few have names. A file "broken" in the folder makes the job fail once,
 * when it starts.
 * Arguments: a folder for the files; tuples per second. */
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.util.Collector;

public final class TallyJob {
    static final long KEYS = 10;

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        RateLimiterStrategy rate =
                RateLimiterStrategy.perSecond(Double.parseDouble(arguments[1]));
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(n -> n, Long.MAX_VALUE, rate, Types.LONG);
        WatermarkStrategy<Long> times =
                WatermarkStrategy.<Long>forMonotonousTimestamps()
                        .withTimestampAssigner((number, before) -> number);
        DataStream<Long> same =
                env.fromSource(numbers, times, "numbers")
                        .setParallelism(1)
                        .map(number -> number)
                        .returns(Types.LONG)
                        .setParallelism(1);
        same.keyBy(number -> number % KEYS)
                .process(new Count())
                .process(new Tell(arguments[0], "counts"))
                .sinkTo(new DiscardingSink<>());
        same.keyBy(number -> number % KEYS)
                .window(TumblingEventTimeWindows.of(Duration.ofMillis(100)))
                .aggregate(new Sum())
                .process(new Tell(arguments[0], "windows"))
                .name("tell")
                .sinkTo(new DiscardingSink<>())
                .name("out");
        env.execute("tally");
    }

    /** How often a key was seen, and how often it must have been, as numbers follow one another. */
    static final class Count extends KeyedProcessFunction<Long, Long, String> {
        private transient ValueState<Long> seen;

        @Override
        public void processElement(Long number, Context context, Collector<String> out)
                throws Exception {
            if (seen == null) {
                seen = getRuntimeContext()
                        .getState(new ValueStateDescriptor<>("seen", Types.LONG));
            }
            seen.update(seen.value() == null ? 1 : seen.value() + 1);
            out.collect(seen.value() + " " + (number / KEYS + 1));
        }
    }

    /** Key, first number and number of tuples of a window. */
    static final class Sum implements AggregateFunction<Long, long[], String> {
        @Override
        public long[] createAccumulator() {
            return new long[] {Long.MAX_VALUE, 0};
        }

        @Override
        public long[] add(Long number, long[] sum) {
            return new long[] {Math.min(sum[0], number), sum[1] + 1};
        }

        @Override
        public String getResult(long[] sum) {
            return sum[0] % KEYS + " " + sum[0] + " " + sum[1];
        }

        @Override
        public long[] merge(long[] one, long[] other) {
            return new long[] {Math.min(one[0], other[0]), one[1] + other[1]};
        }
    }

    /** Appends to a file. */
    static final class Tell extends ProcessFunction<String, String> {
        private final String folder, kind;

        Tell(String folder, String kind) {
            this.folder = folder;
            this.kind = kind;
        }

        @Override
        public void open(OpenContext context) throws IOException {
            if (Files.deleteIfExists(Path.of(folder, "broken"))) {
                throw new IOException("broken once");
            }
        }

        @Override
        public void processElement(String text, Context context, Collector<String> out)
                throws IOException {
            int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            Files.writeString(
                    Path.of(folder, kind + "-" + subtask),
                    text + "\n",
                    StandardOpenOption.CREATE,
                    StandardOpenOption.APPEND);
        }
    }
}
