/*
 * A job with a day: the rate, the share of tuples with one key, and the work per tuple follow a
 * plan. What has arrived and was not read yet waits, as in a log of messages.
 * Arguments: file of the plan, with lines of a second, tuples per second, share, and factor of the
 * work; its beginning in milliseconds since 1970.
 */
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.util.Collector;

public final class Day {
    static final int KEYS = 1_000, PARSING = 150, COUNTING = 450;

    public static void main(String[] arguments) throws Exception {
        Plan plan = Plan.of(Path.of(arguments[0]), Long.parseLong(arguments[1]));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Long> keys =
                env.addSource(new Log(plan), "log")
                        .returns(Types.LONG)
                        .rebalance()
                        .map(number -> plan.key(number, burned(number, PARSING)))
                        .returns(Types.LONG)
                        .name("parse");
        Application.sink(keys.keyBy(key -> key).process(new Count(plan)).name("count"), "out");
        env.execute("day");
    }

    /** Uses some CPU; the answer depends on all of it. */
    static long burned(long number, long rounds) {
        long mixed = number;
        for (long i = 0; i < rounds; i++) {
            mixed = Application.scrambled(mixed);
        }
        return mixed;
    }

    /** What the day brings, second by second. */
    static final class Plan implements Serializable {
        private final long beginning;
        private final double[] second, rate, share, work;

        private Plan(List<String> lines, long beginning) {
            this.beginning = beginning;
            double[][] columns = new double[4][lines.size()];
            for (int i = 0; i < lines.size(); i++) {
                String[] words = lines.get(i).split(" ");
                for (int column = 0; column < 4; column++) {
                    columns[column][i] = Double.parseDouble(words[column]);
                }
            }
            second = columns[0];
            rate = columns[1];
            share = columns[2];
            work = columns[3];
        }

        static Plan of(Path file, long beginning) throws IOException {
            return new Plan(Files.readAllLines(file), beginning);
        }

        private double now() {
            return (System.currentTimeMillis() - beginning) / 1000.0;
        }

        private int line(double now) {
            int i = 0;
            while (i + 1 < second.length && second[i + 1] <= now) {
                i++;
            }
            return i;
        }

        /** Tuples that have arrived until now; none before the beginning. */
        double arrived() {
            double now = now(), sum = 0;
            for (int i = 0; i < second.length && second[i] < now; i++) {
                double end = i + 1 < second.length ? Math.min(now, second[i + 1]) : now;
                sum += rate[i] * (end - second[i]);
            }
            return sum;
        }

        /** Key of a tuple; most are drawn, the others are the same one. */
        long key(long number, long drawn) {
            boolean isPopular = Application.fraction(~number) < share[line(now())];
            return isPopular ? 0 : Math.floorMod(drawn, KEYS);
        }

        long rounds() {
            return Math.round(COUNTING * work[line(now())]);
        }
    }

    /** Reads what has arrived; what it has read is part of its state. */
    static final class Log extends RichParallelSourceFunction<Long>
            implements CheckpointedFunction {
        private static final int MOST_AT_ONCE = 50;
        private final Plan plan;
        private transient ListState<Long> state;
        private volatile long read;
        private volatile boolean runs = true;

        Log(Plan plan) {
            this.plan = plan;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            ListStateDescriptor<Long> kept = new ListStateDescriptor<>("read", Types.LONG);
            state = context.getOperatorStateStore().getListState(kept);
            for (long own : state.get()) {
                read += own;
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            state.update(List.of(read));
        }

        @Override
        public void open(OpenContext context) {
            Gauge<Long> waiting = () -> Math.max(0L, due() - read);
            getRuntimeContext().getMetricGroup().gauge("pendingRecords", waiting);
            Gauge<Long> passed = () -> read;
            getRuntimeContext().getMetricGroup().gauge("read", passed);
        }

        private long due() {
            int subtasks = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
            return (long) (plan.arrived() / subtasks);
        }

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            int subtasks = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
            int number = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            while (runs) {
                long until = Math.min(due(), read + MOST_AT_ONCE);
                if (read >= until) {
                    Thread.sleep(5);
                    continue;
                }
                synchronized (context.getCheckpointLock()) {
                    while (read < until) {
                        context.collect(read * subtasks + number);
                        read++;
                    }
                }
            }
        }

        @Override
        public void cancel() {
            runs = false;
        }
    }

    /** Counts the tuples of each key, and of all keys of its subtask. */
    static final class Count extends KeyedProcessFunction<Long, Long, Long>
            implements CheckpointedFunction {
        private final Plan plan;
        private transient ListState<Long> state;
        private transient ValueState<Long> ofKey;
        private volatile long counted;

        Count(Plan plan) {
            this.plan = plan;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            ListStateDescriptor<Long> kept = new ListStateDescriptor<>("counted", Types.LONG);
            state = context.getOperatorStateStore().getListState(kept);
            for (long own : state.get()) {
                counted += own;
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            state.update(List.of(counted));
        }

        @Override
        public void open(OpenContext context) {
            ofKey = getRuntimeContext().getState(new ValueStateDescriptor<>("n", Types.LONG));
            Gauge<Long> all = () -> counted;
            getRuntimeContext().getMetricGroup().gauge("counted", all);
        }

        @Override
        public void processElement(Long key, Context context, Collector<Long> out)
                throws Exception {
            Long before = ofKey.value();
            ofKey.update((before == null ? 0 : before) + 1 + (burned(key, plan.rounds()) & 0));
            counted++;
            out.collect(ofKey.value());
        }
    }
}
