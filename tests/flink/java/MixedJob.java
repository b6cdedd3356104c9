/* A chain of two operators with state whose maximum parallelisms differ: 12 of the first, 64 of the
 * second. Argument: tuples per second. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

public final class MixedJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        RateLimiterStrategy rate =
                RateLimiterStrategy.perSecond(Double.parseDouble(arguments[0]));
        env.fromSource(
                        new DataGeneratorSource<>(n -> n, Long.MAX_VALUE, rate, Types.LONG),
                        WatermarkStrategy.noWatermarks(),
                        "numbers")
                .setParallelism(1)
                .keyBy(number -> number % 10)
                .process(new Count())
                .name("count")
                .setParallelism(2)
                .setMaxParallelism(12)
                .map(new Total())
                .name("total")
                .setParallelism(2)
                .setMaxParallelism(64)
                .sinkTo(new DiscardingSink<>())
                .name("nowhere")
                .setParallelism(2);
        env.execute("mixed");
    }

    static final class Count extends KeyedProcessFunction<Long, Long, Long> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Long number, Context context, Collector<Long> out)
                throws Exception {
            long counted = count.value() == null ? 1 : count.value() + 1;
            count.update(counted);
            out.collect(counted);
        }
    }

    static final class Total implements MapFunction<Long, Long>, CheckpointedFunction {
        private long total;
        private transient ListState<Long> saved;

        @Override
        public Long map(Long number) {
            return total++;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            saved.clear();
            saved.add(total);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            saved =
                    context.getOperatorStateStore()
                            .getListState(new ListStateDescriptor<>("total", Types.LONG));
            for (long one : saved.get()) {
                total += one;
            }
        }
    }
}
