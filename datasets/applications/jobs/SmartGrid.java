/*
 * Watches the smart plugs of houses: the source parses their loads; told are the share of a house's
 * plugs whose median load of the last hour is above that of all plugs, when it changes, and every
 * 15 seconds the load that is to be expected of houses and plugs.
 */
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.CoProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public final class SmartGrid {
    static final int HOUSES = 40, HOUSEHOLDS = 5, PLUGS = 10, SECONDS_PER_READING = 60;
    static final int WINDOW_SECONDS = 3_600, HISTORY = 20;
    static final long START = 1_377_986_400; // 1 September 2013
    static final Duration SLICE = Duration.ofSeconds(15);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Reading> readings =
                Application.source(
                        env,
                        "source",
                        arguments,
                        number -> parse(line(number)),
                        Types.POJO(Reading.class));
        DataStream<Tuple2<Reading, Integer>> changes =
                readings.flatMap(new Slide()).name("sliding-window");
        DataStream<Double> median = changes.map(new GlobalMedian()).name("global-median");
        DataStream<Tuple2<Reading, Double>> plugMedians =
                changes.keyBy(change -> change.f0.plug)
                        .process(new PlugMedian())
                        .name("plug-median");
        Application.sink(
                median.connect(plugMedians.keyBy(plugMedian -> plugMedian.f0.house))
                        .process(new Outliers())
                        .name("outlier-detector"),
                "outlier-sink");
        DataStream<Tuple3<String, Long, Double>> ofHouses =
                predicted(readings.keyBy(reading -> reading.house), "house-load-predictor");
        DataStream<Tuple3<String, Long, Double>> ofPlugs =
                predicted(readings.keyBy(reading -> reading.plug), "plug-load-predictor");
        Application.sink(ofHouses.union(ofPlugs), "prediction-sink");
        env.execute("smart-grid");
    }

    static <K> DataStream<Tuple3<String, Long, Double>> predicted(
            KeyedStream<Reading, K> readings, String name) {
        return readings.window(TumblingProcessingTimeWindows.of(SLICE))
                .aggregate(new Mean(), new Predict<>())
                .name(name);
    }

    /** Number, time, load in watts, property (1: load), plug, household and house. */
    static String line(long number) {
        int plugs = HOUSES * HOUSEHOLDS * PLUGS;
        long plug = number % plugs, round = number / plugs;
        double usual = 5 + 300 * Math.pow(Application.fraction(~plug), 3);
        boolean on = Application.fraction(plug * 1_000_003 + round / 20) < 0.7;
        double load = on ? usual * (0.9 + 0.2 * Application.fraction(number)) : 0;
        return number + "," + (START + round * SECONDS_PER_READING) + ","
                + Math.round(load * 1_000) / 1_000.0 + ",1," + plug % PLUGS + ","
                + plug / PLUGS % HOUSEHOLDS + "," + plug / PLUGS / HOUSEHOLDS;
    }

    static Reading parse(String line) {
        String[] fields = line.split(",");
        Reading reading = new Reading();
        reading.time = Long.parseLong(fields[1]);
        reading.load = Double.parseDouble(fields[2]);
        reading.house = Integer.parseInt(fields[6]);
        reading.plug = fields[6] + "/" + fields[5] + "/" + fields[4];
        return reading;
    }

    /** A plug's load in watts; the plug is named by house, household and its number there. */
    public static final class Reading {
        public int house;
        public String plug;
        public long time;
        public double load;
    }

    /** Tells the readings that enter the window (1) and those that leave it (-1). */
    static final class Slide implements FlatMapFunction<Reading, Tuple2<Reading, Integer>> {
        private final ArrayDeque<Reading> window = new ArrayDeque<>();

        @Override
        public void flatMap(Reading reading, Collector<Tuple2<Reading, Integer>> changes) {
            window.add(reading);
            changes.collect(Tuple2.of(reading, 1));
            while (window.peek().time <= reading.time - WINDOW_SECONDS) {
                changes.collect(Tuple2.of(window.remove(), -1));
            }
        }
    }

    /** The median of all loads in the window. */
    static final class GlobalMedian implements MapFunction<Tuple2<Reading, Integer>, Double> {
        private final Halves loads = new Halves();

        @Override
        public Double map(Tuple2<Reading, Integer> change) {
            loads.change(change.f0.load, change.f1);
            return loads.median();
        }
    }

    /** Numbers that come and go, those up to the median apart from those above it. */
    static final class Halves implements Serializable {
        private final TreeMap<Double, Integer> low = new TreeMap<>(), high = new TreeMap<>();
        private int lows, highs;

        void change(double number, int by) {
            if (!low.isEmpty() && number <= low.lastKey()) {
                add(low, number, by);
                lows += by;
            } else {
                add(high, number, by);
                highs += by;
            }
            if (lows < highs) {
                move(high.firstKey(), high, low);
                highs--;
                lows++;
            } else if (lows > highs + 1) {
                move(low.lastKey(), low, high);
                lows--;
                highs++;
            }
        }

        double median() {
            return lows > highs ? low.lastKey() : (low.lastKey() + high.firstKey()) / 2;
        }

        private static void move(
                Double number, TreeMap<Double, Integer> from, TreeMap<Double, Integer> to) {
            add(from, number, -1);
            add(to, number, 1);
        }

        private static void add(TreeMap<Double, Integer> counts, Double number, int by) {
            counts.merge(number, by, (count, more) -> count + more == 0 ? null : count + more);
        }
    }

    /** The median of a plug's loads in the window, which are kept in order. */
    static final class PlugMedian
            extends KeyedProcessFunction<
                    String, Tuple2<Reading, Integer>, Tuple2<Reading, Double>> {
        private static final TypeInformation<double[]> LOADS =
                PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO;
        private transient ValueState<double[]> loads;

        @Override
        public void open(OpenContext context) {
            loads = getRuntimeContext().getState(new ValueStateDescriptor<>("loads", LOADS));
        }

        @Override
        public void processElement(
                Tuple2<Reading, Integer> change,
                Context context,
                Collector<Tuple2<Reading, Double>> medians)
                throws Exception {
            double[] stored = loads.value(), before = stored == null ? new double[0] : stored;
            int found = Arrays.binarySearch(before, change.f0.load);
            int place = found < 0 ? -found - 1 : found;
            double[] after = new double[before.length + change.f1];
            System.arraycopy(before, 0, after, 0, place);
            if (change.f1 > 0) {
                after[place] = change.f0.load;
                System.arraycopy(before, place, after, place + 1, before.length - place);
            } else {
                System.arraycopy(before, place + 1, after, place, after.length - place);
            }
            loads.update(after);
            if (after.length > 0) {
                double median = (after[(after.length - 1) / 2] + after[after.length / 2]) / 2;
                medians.collect(Tuple2.of(change.f0, median));
            }
        }
    }

    /** The share of a house's plugs above the global median, in percent, when it changes. */
    static final class Outliers
            extends CoProcessFunction<
                    Double, Tuple2<Reading, Double>, Tuple3<Long, Integer, Double>> {
        private final Map<Integer, Map<String, Boolean>> aboveByHouse = new HashMap<>();
        private double median = Double.NaN;

        @Override
        public void processElement1(
                Double newMedian, Context context, Collector<Tuple3<Long, Integer, Double>> out) {
            median = newMedian;
        }

        @Override
        public void processElement2(
                Tuple2<Reading, Double> plug,
                Context context,
                Collector<Tuple3<Long, Integer, Double>> shares) {
            Map<String, Boolean> above =
                    aboveByHouse.computeIfAbsent(plug.f0.house, none -> new HashMap<>());
            boolean isAbove = plug.f1 > median;
            Boolean before = above.put(plug.f0.plug, isAbove);
            if (before == null || before != isAbove) {
                int outliers = Collections.frequency(above.values(), true);
                double share = 100.0 * outliers / above.size();
                shares.collect(Tuple3.of(plug.f0.time, plug.f0.house, share));
            }
        }
    }

    static final class Mean implements AggregateFunction<Reading, Tuple2<Double, Long>, Double> {
        @Override
        public Tuple2<Double, Long> createAccumulator() {
            return Tuple2.of(0.0, 0L);
        }

        @Override
        public Tuple2<Double, Long> add(Reading reading, Tuple2<Double, Long> sum) {
            return Tuple2.of(sum.f0 + reading.load, sum.f1 + 1);
        }

        @Override
        public Double getResult(Tuple2<Double, Long> sum) {
            return sum.f0 / sum.f1;
        }

        @Override
        public Tuple2<Double, Long> merge(Tuple2<Double, Long> one, Tuple2<Double, Long> other) {
            return Tuple2.of(one.f0 + other.f0, one.f1 + other.f1);
        }
    }

    /** Expects, two slices on, the mean of this slice's load and the median of those before. */
    static final class Predict<K>
            extends ProcessWindowFunction<Double, Tuple3<String, Long, Double>, K, TimeWindow> {
        private final ListStateDescriptor<Double> history =
                new ListStateDescriptor<>("history", Types.DOUBLE);

        @Override
        public void process(
                K key,
                Context context,
                Iterable<Double> means,
                Collector<Tuple3<String, Long, Double>> predictions)
                throws Exception {
            double mean = means.iterator().next();
            ListState<Double> state = context.globalState().getListState(history);
            List<Double> past = new ArrayList<>();
            state.get().forEach(past::add);
            double usual = past.isEmpty() ? mean : median(past);
            past.add(mean);
            state.update(past.subList(Math.max(0, past.size() - HISTORY), past.size()));
            long time = context.window().getStart() + 2 * SLICE.toMillis();
            predictions.collect(Tuple3.of(key.toString(), time, (mean + usual) / 2));
        }

        private static double median(List<Double> numbers) {
            List<Double> sorted = numbers.stream().sorted().toList();
            return (sorted.get((sorted.size() - 1) / 2) + sorted.get(sorted.size() / 2)) / 2;
        }
    }
}
