/* Joins rides with their fares, as the RidesAndFares exercise of Flink's training has it: two sources
 * of one name, whichever comes first waits in the state of its key; the join has a uid and a name.
 * Arguments: how many rides, how many per second, a folder for the results. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.RichCoFlatMapFunction;
import org.apache.flink.util.Collector;

public final class FaresJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(500);
        long rides = Long.parseLong(arguments[0]);
        source(env, arguments, "rides")
                .filter(ride -> ride % 10 != 0)
                .keyBy(ride -> ride)
                .connect(fares(env, arguments, rides))
                .flatMap(new Enrich())
                .uid("enrichment")
                .name("enrichment")
                .sinkTo(EventsJob.files(arguments[2]));
        env.execute("Join Rides with Fares");
    }

    private static DataStream<Long> source(
            StreamExecutionEnvironment env, String[] arguments, String name) {
        return env.fromSource(
                EventsJob.numbers(arguments[0], arguments[1]),
                WatermarkStrategy.noWatermarks(),
                name);
    }

    /** Fares of rides that come in another order than the rides do. */
    private static KeyedStream<Long, Long> fares(
            StreamExecutionEnvironment env, String[] arguments, long rides) {
        return source(env, arguments, "fares")
                .map(number -> (number + rides / 3) % rides)
                .returns(Types.LONG)
                .keyBy(ride -> ride);
    }

    /** Tells ride and fare when both are there. */
    static final class Enrich extends RichCoFlatMapFunction<Long, Long, String> {
        private transient ValueState<Long> ride, fare;

        @Override
        public void open(OpenContext context) {
            ride = getRuntimeContext().getState(new ValueStateDescriptor<>("ride", Types.LONG));
            fare = getRuntimeContext().getState(new ValueStateDescriptor<>("fare", Types.LONG));
        }

        @Override
        public void flatMap1(Long came, Collector<String> out) throws Exception {
            meet(came, fare, ride, out);
        }

        @Override
        public void flatMap2(Long came, Collector<String> out) throws Exception {
            meet(came, ride, fare, out);
        }

        private static void meet(
                Long came, ValueState<Long> other, ValueState<Long> own, Collector<String> out)
                throws Exception {
            if (other.value() == null) {
                own.update(came);
            } else {
                out.collect(came + " " + other.value());
                other.clear();
            }
        }
    }
}
