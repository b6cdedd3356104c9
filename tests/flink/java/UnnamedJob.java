/* Counts numbers by key, by operators that nobody has named; its process ends if the job fails.
 * Argument: a uid of the counting operator. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class UnnamedJob {
    public static void main(String[] arguments) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(2);
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(
                        n -> n, Long.MAX_VALUE, RateLimiterStrategy.perSecond(100), Types.LONG);
        SingleOutputStreamOperator<Long> counted =
                env.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers")
                        .rebalance()
                        .map(n -> 3 * n)
                        .returns(Types.LONG)
                        .keyBy(n -> n % 10)
                        .map(new Count());
        if (arguments.length > 0) {
            counted.uid(arguments[0]);
        }
        counted.rebalance().map(n -> n + 1).returns(Types.LONG).sinkTo(new DiscardingSink<>());
        try {
            env.execute();
        } catch (Exception failure) {
            System.exit(1);
        }
    }

    static final class Count extends RichMapFunction<Long, Long> {
        private transient ValueState<Long> seen;

        @Override
        public Long map(Long number) throws Exception {
            if (seen == null) {
                seen = getRuntimeContext()
                        .getState(new ValueStateDescriptor<>("seen", Types.LONG));
            }
            seen.update(seen.value() == null ? 1 : seen.value() + 1);
            return seen.value();
        }
    }
}
