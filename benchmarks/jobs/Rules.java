/* Payments judged by rules that some of them become, and that are broadcast to all judges.
 * Arguments: offered payments per second; "unnamed" leaves all operators their default names. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

public final class Rules {
    private static final int CARDS = 5_000, RULES = 50, PAYMENTS_PER_RULE = 200;
    private static final MapStateDescriptor<Integer, Long> KNOWN =
            new MapStateDescriptor<>("rules", Types.INT, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        boolean isNamed = arguments.length < 2 || !arguments[1].equals("unnamed");
        SingleOutputStreamOperator<String> payments =
                source(env, arguments[0], isNamed ? "payments" : "Source", Rules::payment)
                        .setParallelism(2);
        SingleOutputStreamOperator<Tuple2<Integer, Long>> decoded =
                payments.forward()
                        .map(Rules::decode)
                        .returns(Types.TUPLE(Types.INT, Types.LONG))
                        .setParallelism(2);
        SingleOutputStreamOperator<Tuple2<Integer, Long>> compiled =
                payments.rebalance()
                        .flatMap(Rules::compile)
                        .returns(Types.TUPLE(Types.INT, Types.LONG))
                        .setParallelism(1);
        SingleOutputStreamOperator<Tuple2<Integer, Long>> judged =
                decoded.keyBy(payment -> payment.f0)
                        .connect(compiled.broadcast(KNOWN))
                        .process(new Judge())
                        .setParallelism(4);
        SingleOutputStreamOperator<Tuple2<Integer, Long>> weighed =
                judged.forward()
                        .map(payment -> Tuple2.of(payment.f0, payment.f1 + work(4_000)))
                        .returns(Types.TUPLE(Types.INT, Types.LONG))
                        .setParallelism(4);
        SingleOutputStreamOperator<String> texts =
                weighed.rescale()
                        .map(payment -> payment.f0 + ";" + payment.f1 + work(3_000))
                        .returns(Types.STRING)
                        .setParallelism(2);
        var sink = texts.rebalance().sinkTo(new DiscardingSink<>()).setParallelism(1);
        if (isNamed) {
            decoded.name("decode");
            compiled.name("compile");
            judged.name("judge");
            weighed.name("weigh");
            texts.name("format");
            sink.name("sink");
        }
        env.execute("Rules");
    }

    static SingleOutputStreamOperator<String> source(
            StreamExecutionEnvironment env,
            String perSecond,
            String name,
            GeneratorFunction<Long, String> line) {
        DataGeneratorSource<String> lines =
                new DataGeneratorSource<>(
                        line,
                        Long.MAX_VALUE,
                        RateLimiterStrategy.perSecond(Double.parseDouble(perSecond)),
                        Types.STRING);
        return env.fromSource(lines, WatermarkStrategy.noWatermarks(), name);
    }

    static String payment(long number) {
        return number * 7919 % CARDS + ";" + number % 977;
    }

    static Tuple2<Integer, Long> decode(String line) {
        String[] cells = line.split(";");
        return Tuple2.of(Integer.parseInt(cells[0]), Long.parseLong(cells[1]) + work(2_000));
    }

    static void compile(String line, Collector<Tuple2<Integer, Long>> out) {
        int card = Integer.parseInt(line.substring(0, line.indexOf(';')));
        if (card % PAYMENTS_PER_RULE == 0) {
            out.collect(decode(line));
        }
    }

    /** Takes about a nanosecond a round. */
    static long work(int rounds) {
        long x = 88172645463325252L;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x & 1;
    }

    /** Counts the rules that a payment breaks. */
    static final class Judge
            extends KeyedBroadcastProcessFunction<
                    Integer, Tuple2<Integer, Long>, Tuple2<Integer, Long>, Tuple2<Integer, Long>> {
        @Override
        public void processElement(
                Tuple2<Integer, Long> payment,
                ReadOnlyContext context,
                Collector<Tuple2<Integer, Long>> out)
                throws Exception {
            long broken = work(6_000);
            for (var rule : context.getBroadcastState(KNOWN).immutableEntries()) {
                broken += payment.f1 > rule.getValue() ? 1 : 0;
            }
            out.collect(Tuple2.of(payment.f0, broken));
        }

        @Override
        public void processBroadcastElement(
                Tuple2<Integer, Long> rule, Context context, Collector<Tuple2<Integer, Long>> out)
                throws Exception {
            context.getBroadcastState(KNOWN).put(rule.f0 % RULES, rule.f1);
        }
    }
}
