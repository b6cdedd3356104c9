/* Counts numbers by key in RocksDB: numbers → triple → count → nowhere; all but the source leave
 * their parallelism open.
 * Arguments: the names of triple and count, and, where count has one, its uid. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

public final class StateJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        Configuration state = new Configuration();
        state.setString("state.backend.type", "rocksdb");
        state.setString("execution.checkpointing.interval", "500 ms");
        env.configure(state);
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(
                        n -> n, Long.MAX_VALUE, RateLimiterStrategy.perSecond(100), Types.LONG);
        SingleOutputStreamOperator<Long> counted =
                env.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers")
                        .setParallelism(1)
                        .map(n -> 3 * n)
                        .returns(Types.LONG)
                        .name(arguments[0])
                        .keyBy(n -> n % 10)
                        .process(new Count())
                        .name(arguments[1]);
        if (arguments.length > 2) {
            counted.uid(arguments[2]);
        }
        counted.sinkTo(new DiscardingSink<>()).name("nowhere");
        env.execute("state");
    }

    static final class Count extends KeyedProcessFunction<Long, Long, Long> {
        private transient ValueState<Long> seen;

        @Override
        public void processElement(Long number, Context context, Collector<Long> out)
                throws Exception {
            if (seen == null) {
                seen = getRuntimeContext()
                        .getState(new ValueStateDescriptor<>("seen", Types.LONG));
            }
            seen.update(seen.value() == null ? 1 : seen.value() + 1);
            out.collect(seen.value());
        }
    }
}
