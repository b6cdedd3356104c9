/*
 * Tells telemarketers among the callers of a telephone network: they call many and new numbers,
 * are seldom called, and talk shortly. All rates fade with time.
 */
import java.time.Instant;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.CoProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

public final class VoipStream {
    static final int SUBSCRIBERS = 20_000, TELEMARKETERS = 100, MILLIS_PER_CALL = 40;
    static final long START = 1_750_000_000_000L;
    static final double HOUR = 3.6e6, DAY = 24 * HOUR, MONTH = 30 * DAY;

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Call> calls =
                Application.source(env, "source", arguments, VoipStream::line, Types.STRING)
                        .map(VoipStream::parse)
                        .returns(Call.class)
                        .name("parser")
                        .keyBy(call -> call.caller + call.callee)
                        .map(new MarkNewPairs())
                        .name("voice-dispatcher");
        DataStream<Rate> rcr =
                calls.keyBy(call -> call.caller)
                        .connect(calls.keyBy(call -> call.callee))
                        .process(new Received())
                        .name("rcr");
        DataStream<Rate> ecr = placed(calls, "ecr", HOUR, call -> 1.0);
        DataStream<Rate> encr = placed(calls, "encr", HOUR, call -> call.newPair ? 1.0 : 0.0);
        DataStream<Rate> ct24 = placed(calls, "ct24", DAY, call -> (double) call.seconds);
        DataStream<Rate> ecr24 = placed(calls, "ecr24", DAY, call -> 1.0);
        DataStream<Double> globalAcd = calls.flatMap(new MeanLength()).name("global-acd");
        DataStream<Rate> fofir = ratio("fofir", ecr, rcr), url = ratio("url", encr, ecr);
        DataStream<Rate> acd =
                ct24.union(ecr24)
                        .keyBy(rate -> rate.caller)
                        .connect(globalAcd)
                        .process(new RelativeLength())
                        .name("acd");
        DataStream<Tuple3<String, Long, Double>> scores =
                fofir.union(url, acd)
                        .keyBy(rate -> rate.caller)
                        .process(new Score())
                        .name("scorer");
        Application.sink(scores, "sink");
        env.execute("voip-stream");
    }

    static DataStream<Rate> placed(
            DataStream<Call> calls, String name, double fading, MapFunction<Call, Double> amount) {
        Placed placed = new Placed(name, fading, amount);
        return calls.keyBy(call -> call.caller).process(placed).name(name);
    }

    static DataStream<Rate> ratio(String name, DataStream<Rate> above, DataStream<Rate> below) {
        return above.keyBy(rate -> rate.caller)
                .connect(below.keyBy(rate -> rate.caller))
                .process(new Ratio(name))
                .name(name);
    }

    /** Record of a call: subscribers call eight friends, telemarketers call anybody. */
    static String line(long number) {
        long look = Application.scrambled(number) >>> 1;
        boolean sells = look % 10 == 0;
        long caller = look / 10 % (sells ? TELEMARKETERS : SUBSCRIBERS);
        long other = Application.scrambled(look) >>> 1, friend = other % 2 == 0 ? 1 : -1;
        long callee = sells ? other : caller + SUBSCRIBERS + friend * (1 + other / 2 % 4);
        double seconds = (sells ? -30 : -150) * Math.log(1 - Application.fraction(other));
        boolean answered = Application.fraction(~look) < 0.5;
        String outcome = answered ? (int) Math.ceil(seconds) + ",ANSWERED" : "0,NO ANSWER";
        Instant time = Instant.ofEpochMilli(START + number * MILLIS_PER_CALL);
        String numbers = phone(caller) + "," + phone(callee % SUBSCRIBERS);
        return number + "," + numbers + "," + time + "," + outcome + ",G.711,gateway-" + look % 16;
    }

    static String phone(long subscriber) {
        return "+4930" + (10_000_000 + subscriber * 397);
    }

    static Call parse(String line) {
        String[] fields = line.split(",");
        Call call = new Call();
        call.caller = fields[1];
        call.callee = fields[2];
        call.time = Instant.parse(fields[3]).toEpochMilli();
        call.seconds = Integer.parseInt(fields[4]);
        call.answered = fields[5].equals("ANSWERED");
        return call;
    }

    static Rate rate(String name, String caller, long time, double value) {
        Rate rate = new Rate();
        rate.name = name;
        rate.caller = caller;
        rate.time = time;
        rate.value = value;
        return rate;
    }

    /** A call, with whether its caller called this number for the first time in a while. */
    public static final class Call {
        public String caller, callee;
        public long time;
        public int seconds;
        public boolean answered, newPair;
    }

    /** What is known of a caller at the time of a call. */
    public static final class Rate {
        public String name, caller;
        public long time;
        public double value;
    }

    /** An amount that fades with time. */
    public static final class Fading {
        public double value;
        public long time;

        static Fading of(Fading before, long now, double fading, double amount) {
            Fading after = new Fading();
            after.time = now;
            after.value = amount;
            if (before != null) {
                after.value += before.value * Math.exp((before.time - now) / fading);
            }
            return after;
        }
    }

    /** Tells new pairs of numbers by two Bloom filters, the older of which is emptied when full. */
    static final class MarkNewPairs extends RichMapFunction<Call, Call> {
        private static final int BITS = 1 << 22, HASHES = 5, PAIRS = 400_000;
        private transient long[] newer, older;
        private transient int pairs;

        @Override
        public void open(OpenContext context) {
            newer = new long[BITS / 64];
            older = new long[BITS / 64];
        }

        @Override
        public Call map(Call call) {
            long hash = (long) call.caller.hashCode() << 32 | call.callee.hashCode() & 0xffffffffL;
            long start = Application.scrambled(hash), step = Application.scrambled(start) | 1;
            boolean inNewer = true, inOlder = true;
            for (int i = 0; i < HASHES; i++) {
                int bit = (int) (start + i * step) & (BITS - 1);
                inNewer &= (newer[bit >> 6] >>> bit & 1) == 1;
                inOlder &= (older[bit >> 6] >>> bit & 1) == 1;
                newer[bit >> 6] |= 1L << bit;
            }
            if (!inNewer && ++pairs == PAIRS) {
                older = newer;
                newer = new long[BITS / 64];
                pairs = 0;
            }
            call.newPair = !inNewer && !inOlder;
            return call;
        }
    }

    /** Calls that a caller received. */
    static final class Received extends KeyedCoProcessFunction<String, Call, Call, Rate> {
        private transient ValueState<Fading> received;

        @Override
        public void open(OpenContext context) {
            received = getRuntimeContext().getState(fading());
        }

        @Override
        public void processElement1(Call placed, Context context, Collector<Rate> rates)
                throws Exception {
            if (placed.answered) {
                double value = Fading.of(received.value(), placed.time, HOUR, 0).value;
                rates.collect(rate("rcr", placed.caller, placed.time, value));
            }
        }

        @Override
        public void processElement2(Call call, Context context, Collector<Rate> rates)
                throws Exception {
            if (call.answered) {
                received.update(Fading.of(received.value(), call.time, HOUR, 1));
            }
        }
    }

    /** What a caller's answered calls amount to. */
    static final class Placed extends KeyedProcessFunction<String, Call, Rate> {
        private final String name;
        private final double fading;
        private final MapFunction<Call, Double> amount;
        private transient ValueState<Fading> placed;

        Placed(String name, double fading, MapFunction<Call, Double> amount) {
            this.name = name;
            this.fading = fading;
            this.amount = amount;
        }

        @Override
        public void open(OpenContext context) {
            placed = getRuntimeContext().getState(fading());
        }

        @Override
        public void processElement(Call call, Context context, Collector<Rate> rates)
                throws Exception {
            if (call.answered) {
                Fading now = Fading.of(placed.value(), call.time, fading, amount.map(call));
                placed.update(now);
                rates.collect(rate(name, call.caller, call.time, now.value));
            }
        }
    }

    static ValueStateDescriptor<Fading> fading() {
        return new ValueStateDescriptor<>("calls", Types.POJO(Fading.class));
    }

    static MapStateDescriptor<Long, Double> waiting(String name) {
        return new MapStateDescriptor<>(name, Types.LONG, Types.DOUBLE);
    }

    /** The other rate of the same call, or nothing where this one has to wait for it. */
    static Double met(Rate rate, MapState<Long, Double> waiting, MapState<Long, Double> others)
            throws Exception {
        Double other = others.get(rate.time);
        if (other == null) {
            waiting.put(rate.time, rate.value);
        } else {
            others.remove(rate.time);
        }
        return other;
    }

    /** Mean length of all answered calls. */
    static final class MeanLength implements FlatMapFunction<Call, Double> {
        private transient Fading seconds, calls;

        @Override
        public void flatMap(Call call, Collector<Double> means) {
            if (call.answered) {
                seconds = Fading.of(seconds, call.time, MONTH, call.seconds);
                calls = Fading.of(calls, call.time, MONTH, 1);
                means.collect(seconds.value / calls.value);
            }
        }
    }

    /** Divides two rates of the same call. */
    static final class Ratio extends KeyedCoProcessFunction<String, Rate, Rate, Rate> {
        private final String name;
        private transient MapState<Long, Double> above, below;

        Ratio(String name) {
            this.name = name;
        }

        @Override
        public void open(OpenContext context) {
            above = getRuntimeContext().getMapState(waiting("above"));
            below = getRuntimeContext().getMapState(waiting("below"));
        }

        @Override
        public void processElement1(Rate rate, Context context, Collector<Rate> ratios)
                throws Exception {
            Double divisor = met(rate, above, below);
            if (divisor != null) {
                ratios.collect(ratio(rate, rate.value, divisor));
            }
        }

        @Override
        public void processElement2(Rate rate, Context context, Collector<Rate> ratios)
                throws Exception {
            Double dividend = met(rate, below, above);
            if (dividend != null) {
                ratios.collect(ratio(rate, dividend, rate.value));
            }
        }

        private Rate ratio(Rate of, double dividend, double divisor) {
            return rate(name, of.caller, of.time, divisor > 0 ? dividend / divisor : dividend);
        }
    }

    /** Mean length of a caller's calls, as a part of that of all calls. */
    static final class RelativeLength extends CoProcessFunction<Rate, Double, Rate> {
        private double everybodys = 1;
        private transient MapState<Long, Double> seconds, calls;

        @Override
        public void open(OpenContext context) {
            seconds = getRuntimeContext().getMapState(waiting("seconds"));
            calls = getRuntimeContext().getMapState(waiting("calls"));
        }

        @Override
        public void processElement1(Rate rate, Context context, Collector<Rate> lengths)
                throws Exception {
            boolean counts = rate.name.equals("ecr24");
            Double other = counts ? met(rate, calls, seconds) : met(rate, seconds, calls);
            if (other != null) {
                double mean = counts ? other / rate.value : rate.value / other;
                lengths.collect(rate("acd", rate.caller, rate.time, mean / everybodys));
            }
        }

        @Override
        public void processElement2(Double mean, Context context, Collector<Rate> lengths) {
            everybodys = mean;
        }
    }

    /** Weighs the latest that is known of a caller: from 0 for a friend to 1 for a telemarketer. */
    static final class Score
            extends KeyedProcessFunction<String, Rate, Tuple3<String, Long, Double>> {
        private transient ValueState<Suspicion> suspicions;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Suspicion> state =
                    new ValueStateDescriptor<>("suspicion", Types.POJO(Suspicion.class));
            suspicions = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(
                Rate rate, Context context, Collector<Tuple3<String, Long, Double>> scores)
                throws Exception {
            Suspicion known = suspicions.value() == null ? new Suspicion() : suspicions.value();
            switch (rate.name) {
                case "fofir" -> known.fofir = between(rate.value, 2, 10);
                case "url" -> known.url = between(rate.value, 0.25, 1);
                default -> known.acd = 1 - between(rate.value, 0.2, 1);
            }
            suspicions.update(known);
            double score = (2 * known.fofir + 2 * known.url + 3 * known.acd) / 7;
            scores.collect(Tuple3.of(rate.caller, rate.time, score));
        }

        private static double between(double value, double low, double high) {
            return Math.min(1, Math.max(0, (value - low) / (high - low)));
        }
    }

    /** How far a caller calls more than is called, calls new numbers, and talks shortly. */
    public static final class Suspicion {
        public double fofir, url, acd;
    }
}
