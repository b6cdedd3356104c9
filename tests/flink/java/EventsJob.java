/* Follows machines through their states and tells every event that they do not expect, as Flink's
 * StateMachineExample does: state by key, and a sink with transactions that is narrower than what
 * feeds it. No operator has a uid.
 * Arguments: how many events, how many per second, a folder for the alarms. */
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.util.Collector;

public final class EventsJob {
    private static final int STATES = 5, BLOCK = 1000, MACHINES = 10;

    public static void main(String[] arguments) throws Exception {
        Configuration own = new Configuration();
        own.setString("execution.checkpointing.interval", "500 ms");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(own);
        env.fromSource(
                        numbers(arguments[0], arguments[1]),
                        WatermarkStrategy.noWatermarks(),
                        "Events Generator Source")
                .keyBy(event -> event / BLOCK * MACHINES + event % MACHINES)
                .flatMap(new Machine())
                .sinkTo(files(arguments[2]))
                .setParallelism(1)
                .name("output");
        env.execute("State machine job");
    }

    /** The numbers from 0 on, in as many pieces as there are subtasks, which know how far they are. */
    static DataGeneratorSource<Long> numbers(String count, String perSecond) {
        RateLimiterStrategy rate = RateLimiterStrategy.perSecond(Double.parseDouble(perSecond));
        return new DataGeneratorSource<>(n -> n, Long.parseLong(count), rate, Types.LONG);
    }

    /** Writes texts to files that are complete once a checkpoint is. */
    static FileSink<String> files(String folder) {
        return FileSink.forRowFormat(new Path(folder), new SimpleStringEncoder<String>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .withBucketCheckInterval(Duration.ofHours(1).toMillis())
                .build();
    }

    /** A machine goes on by the events that its state and its age expect. */
    static final class Machine extends RichFlatMapFunction<Long, String> {
        private transient ValueState<Long> age;

        @Override
        public void open(OpenContext context) {
            age = getRuntimeContext().getState(new ValueStateDescriptor<>("age", Types.LONG));
        }

        @Override
        public void flatMap(Long event, Collector<String> alarms) throws Exception {
            long old = age.value() == null ? 0 : age.value();
            long kind = (event * 2654435761L >>> 16) % STATES;
            if (kind == old % STATES) {
                alarms.collect(event + " in state " + kind + " after " + old);
            }
            age.update(kind == 0 && old > BLOCK / MACHINES / 2 ? 0 : old + 1);
        }
    }
}
