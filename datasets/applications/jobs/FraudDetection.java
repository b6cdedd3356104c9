/* Tells how unlikely the last transactions of a customer are, against a Markov model of habits. */
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class FraudDetection {
    static final int CUSTOMERS = 5_000, WINDOW = 5;
    /** Low, normal or high amount; normal or dear item; long, normal or short time before. */
    static final String AMOUNTS = "LNH", ITEMS = "ND", GAPS = "LNS";
    /** How often each letter follows each. */
    static final double[][] NEXT_AMOUNT = {{.78, .19, .03}, {.45, .48, .07}, {.50, .38, .12}};
    static final double[][] NEXT_ITEM = {{.94, .06}, {.85, .15}};
    static final double[][] NEXT_GAP = {{.66, .28, .06}, {.48, .41, .11}, {.42, .38, .20}};

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Tuple3<String, Double, String>> scores =
                Application.source(env, "source", arguments, FraudDetection::line, Types.STRING)
                        .map(FraudDetection::parse)
                        .returns(Types.TUPLE(Types.STRING, Types.STRING, Types.STRING))
                        .name("parser")
                        .keyBy(transaction -> transaction.f0)
                        .process(new Predict())
                        .name("predictor");
        Application.sink(scores, "sink");
        env.execute("fraud-detection");
    }

    /** Customer, transaction and its kind; one customer in a hundred has no habits. */
    static String line(long number) {
        long customer = Math.floorMod(Application.scrambled(number), (long) CUSTOMERS);
        double habit = customer % 100 == 0 ? 1 : 2.5;
        return identifier(~customer)
                + ","
                + identifier(number)
                + ","
                + letter(AMOUNTS, 3 * number, habit)
                + letter(ITEMS, 3 * number + 1, habit)
                + letter(GAPS, 3 * number + 2, habit);
    }

    static String identifier(long seed) {
        return Long.toString(Application.scrambled(seed) >>> 14, 36).toUpperCase();
    }

    static char letter(String letters, long seed, double habit) {
        double part = Math.pow(Application.fraction(seed), habit);
        return letters.charAt((int) (letters.length() * part));
    }

    static Tuple3<String, String, String> parse(String line) {
        String[] fields = line.split(",");
        if (fields.length != 3 || fields[2].length() != 3) {
            throw new IllegalArgumentException("not a transaction: " + line);
        }
        return Tuple3.of(fields[0], fields[1], fields[2]);
    }

    /** Number of the state that the three letters at a place stand for. */
    static int state(String kinds, int at) {
        int amount = AMOUNTS.indexOf(kinds.charAt(at));
        int item = ITEMS.indexOf(kinds.charAt(at + 1));
        int gap = GAPS.indexOf(kinds.charAt(at + 2));
        return (amount * ITEMS.length() + item) * GAPS.length() + gap;
    }

    /** Probability of every state after every other. */
    static double[][] model() {
        int gaps = GAPS.length(), items = ITEMS.length(), states = AMOUNTS.length() * items * gaps;
        double[][] model = new double[states][states];
        for (int from = 0; from < states; from++) {
            for (int to = 0; to < states; to++) {
                model[from][to] =
                        NEXT_AMOUNT[from / gaps / items][to / gaps / items]
                                * NEXT_ITEM[from / gaps % items][to / gaps % items]
                                * NEXT_GAP[from % gaps][to % gaps];
            }
        }
        return model;
    }

    /** Scores the last transactions of a customer: customer, score, kinds of these transactions. */
    static final class Predict
            extends KeyedProcessFunction<
                    String, Tuple3<String, String, String>, Tuple3<String, Double, String>> {
        private transient double[][] model;
        private transient ValueState<String> recent;

        @Override
        public void open(OpenContext context) {
            model = model();
            ValueStateDescriptor<String> state = new ValueStateDescriptor<>("kinds", Types.STRING);
            recent = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(
                Tuple3<String, String, String> transaction,
                Context context,
                Collector<Tuple3<String, Double, String>> scores)
                throws Exception {
            String before = recent.value();
            String kinds = before == null ? transaction.f2 : before + "," + transaction.f2;
            if (kinds.length() >= 4 * WINDOW) {
                kinds = kinds.substring(4);
            }
            recent.update(kinds);
            scores.collect(Tuple3.of(transaction.f0, score(kinds), kinds));
        }

        /** Mean probability that something else had happened. */
        private double score(String kinds) {
            double missed = 0;
            int steps = 0;
            for (int at = 4; at < kinds.length(); at += 4, steps++) {
                missed += 1 - model[state(kinds, at - 4)][state(kinds, at)];
            }
            return steps == 0 ? 0 : missed / steps;
        }
    }
}
