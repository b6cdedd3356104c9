/* Readings of meters, parsed, scaled and averaged: fast tuples by every exchange but broadcast.
 * Arguments: offered readings per second; "unnamed" leaves all operators their default names. */
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

public final class Readings {
    private static final int METERS = 10_000;

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        boolean isNamed = arguments.length < 2 || !arguments[1].equals("unnamed");
        SingleOutputStreamOperator<String> lines =
                Rules.source(env, arguments[0], isNamed ? "readings" : "Source", Readings::line);
        SingleOutputStreamOperator<Tuple2<Integer, Double>> parsed =
                lines.setParallelism(2)
                        .rebalance()
                        .map(Readings::parse)
                        .returns(Types.TUPLE(Types.INT, Types.DOUBLE))
                        .setParallelism(4);
        SingleOutputStreamOperator<Tuple2<Integer, Double>> scaled =
                parsed.rescale()
                        .map(reading -> Tuple2.of(reading.f0, reading.f1 + Rules.work(1_500)))
                        .returns(Types.TUPLE(Types.INT, Types.DOUBLE))
                        .setParallelism(2);
        SingleOutputStreamOperator<Tuple2<Integer, Double>> mean =
                scaled.keyBy(reading -> reading.f0).process(new Mean()).setParallelism(4);
        SingleOutputStreamOperator<String> texts =
                mean.forward()
                        .map(reading -> reading.f0 + ";" + reading.f1 + Rules.work(1_000))
                        .returns(Types.STRING)
                        .setParallelism(4);
        if (isNamed) {
            parsed.name("parse");
            scaled.name("scale");
            mean.name("mean");
            texts.name("format");
        }
        var sink = texts.rebalance().sinkTo(new DiscardingSink<>()).setParallelism(1);
        if (isNamed) {
            sink.name("sink");
        }
        env.execute("Readings");
    }

    static String line(long number) {
        return "meter-" + number * 7919 % METERS + ";kWh;" + number % 1000 + ".25";
    }

    static Tuple2<Integer, Double> parse(String line) {
        String[] cells = line.split(";");
        return Tuple2.of(
                Integer.parseInt(cells[0].substring(6)),
                Double.parseDouble(cells[2]) + Rules.work(500));
    }

    /** Mean of what each meter has read so far. */
    static final class Mean
            extends KeyedProcessFunction<Integer, Tuple2<Integer, Double>, Tuple2<Integer, Double>> {
        private transient ValueState<Tuple2<Long, Double>> seen;

        @Override
        public void open(OpenContext context) {
            seen =
                    getRuntimeContext()
                            .getState(
                                    new ValueStateDescriptor<>(
                                            "seen", Types.TUPLE(Types.LONG, Types.DOUBLE)));
        }

        @Override
        public void processElement(
                Tuple2<Integer, Double> reading,
                Context context,
                Collector<Tuple2<Integer, Double>> out)
                throws Exception {
            Tuple2<Long, Double> before = seen.value();
            long count = before == null ? 1 : before.f0 + 1;
            double sum = (before == null ? 0 : before.f1) + reading.f1 + Rules.work(2_000);
            seen.update(Tuple2.of(count, sum));
            out.collect(Tuple2.of(reading.f0, sum / count));
        }
    }
}
