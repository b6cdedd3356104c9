/* Sensor messages of a city: trends, second moments and numbers of distinct values, published. */
import java.util.Arrays;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class RiotStats {
    static final int SEEN_PER_RESULT = 10;

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<RiotEtl.Observation> observations =
                RiotEtl.messages(env, arguments)
                        .flatMap(RiotEtl::parse)
                        .returns(RiotEtl.Observation.class)
                        .name("parse")
                        .keyBy(seen -> seen.sensor)
                        .filter(new RiotEtl.KnownSensors())
                        .name("bloom-filter");
        DataStream<Result> trends =
                observations
                        .keyBy(seen -> seen.sensor + seen.quantity)
                        .process(new KalmanFilter())
                        .name("kalman-filter")
                        .keyBy(seen -> seen.sensor + seen.quantity)
                        .process(new LinearRegression())
                        .name("linear-regression");
        DataStream<Result> moments =
                observations
                        .keyBy(seen -> seen.quantity)
                        .process(new SecondOrderMoment())
                        .name("second-order-moment");
        DataStream<Result> distinct =
                observations
                        .keyBy(seen -> seen.quantity)
                        .process(new DistinctCount())
                        .name("distinct-count");
        DataStream<byte[]> packets =
                trends.union(moments, distinct).map(new Publish()).name("mqtt-publish");
        Application.sink(packets, "sink");
        env.execute("riot-stats");
    }

    static Result result(String statistic, String of, long time, double value) {
        Result result = new Result();
        result.statistic = statistic;
        result.of = of;
        result.time = time;
        result.value = value;
        return result;
    }

    /** Hash of a value to two decimals. */
    static long hash(double value) {
        return Application.scrambled(Math.round(100 * value));
    }

    /** A statistic of a quantity. */
    public static final class Result {
        public String statistic, of;
        public long time;
        public double value;
    }

    /** Smooths what a sensor measures. */
    static final class KalmanFilter
            extends KeyedProcessFunction<String, RiotEtl.Observation, RiotEtl.Observation> {
        private static final double DRIFT = 0.125, NOISE = 0.32;
        private transient ValueState<Estimate> estimates;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Estimate> state =
                    new ValueStateDescriptor<>("estimate", Types.POJO(Estimate.class));
            estimates = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(
                RiotEtl.Observation seen, Context context, Collector<RiotEtl.Observation> smoothed)
                throws Exception {
            Estimate estimate = estimates.value();
            if (estimate == null) {
                estimate = new Estimate();
                estimate.value = seen.value;
                estimate.variance = NOISE;
            }
            double before = estimate.variance + DRIFT, gain = before / (before + NOISE);
            estimate.value += gain * (seen.value - estimate.value);
            estimate.variance = (1 - gain) * before;
            estimates.update(estimate);
            seen.value = estimate.value;
            smoothed.collect(seen);
        }
    }

    /** What is thought of a value. */
    public static final class Estimate {
        public double value, variance;
    }

    /** Predicts the next value of a sensor by a line through the last ones. */
    static final class LinearRegression
            extends KeyedProcessFunction<String, RiotEtl.Observation, Result> {
        private static final int LATEST = 50;
        private transient ValueState<Series> latest;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Series> state =
                    new ValueStateDescriptor<>("latest", Types.POJO(Series.class));
            latest = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(
                RiotEtl.Observation seen, Context context, Collector<Result> predictions)
                throws Exception {
            Series series = latest.value() == null ? new Series() : latest.value();
            series.values[(int) (series.seen++ % LATEST)] = seen.value;
            latest.update(series);
            if (series.seen % SEEN_PER_RESULT == 0) {
                String sensor = context.getCurrentKey();
                predictions.collect(result("prediction", sensor, seen.time, next(series)));
            }
        }

        private static double next(Series series) {
            int n = (int) Math.min(series.seen, LATEST);
            double middle = (n - 1) / 2.0, mean = 0, covariance = 0, variance = 0;
            for (int x = 0; x < n; x++) {
                double value = series.values[(int) ((series.seen - n + x) % LATEST)];
                mean += value / n;
                covariance += (x - middle) * value;
                variance += (x - middle) * (x - middle);
            }
            return mean + covariance / variance * (n - middle);
        }
    }

    /** The last values of a sensor, in a ring. */
    public static final class Series {
        public long seen;
        public double[] values = new double[LinearRegression.LATEST];
    }

    /** Estimates the sum of the squared frequencies of values, after Alon, Matias and Szegedy. */
    static final class SecondOrderMoment
            extends KeyedProcessFunction<String, RiotEtl.Observation, Result> {
        private static final int GROUPS = 8, COUNTERS = 64;
        private transient ValueState<Sketch> sketches;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Sketch> state =
                    new ValueStateDescriptor<>("sketch", Types.POJO(Sketch.class));
            sketches = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(
                RiotEtl.Observation seen, Context context, Collector<Result> moments)
                throws Exception {
            Sketch sketch = sketches.value() == null ? new Sketch() : sketches.value();
            long signs = hash(seen.value);
            for (int i = 0; i < COUNTERS; i++) {
                sketch.counters[i] += 1 - 2 * (signs >>> i & 1);
            }
            sketch.seen++;
            sketches.update(sketch);
            if (sketch.seen % SEEN_PER_RESULT == 0) {
                moments.collect(result("moment", seen.quantity, seen.time, moment(sketch)));
            }
        }

        /** Median of means. */
        private static double moment(Sketch sketch) {
            double[] means = new double[GROUPS];
            for (int i = 0; i < COUNTERS; i++) {
                double count = sketch.counters[i];
                means[i % GROUPS] += count * count * GROUPS / COUNTERS;
            }
            Arrays.sort(means);
            return (means[GROUPS / 2 - 1] + means[GROUPS / 2]) / 2;
        }
    }

    /** Counters of values, each of which adds 1 or takes 1 away. */
    public static final class Sketch {
        public long seen;
        public long[] counters = new long[SecondOrderMoment.COUNTERS];
    }

    /** Estimates how many values differ, after Durand and Flajolet. */
    static final class DistinctCount
            extends KeyedProcessFunction<String, RiotEtl.Observation, Result> {
        private static final int INDEX_BITS = 8, REGISTERS = 1 << INDEX_BITS;
        private static final double LOG_LOG_FACTOR = 0.39701;
        private transient ValueState<Registers> states;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Registers> state =
                    new ValueStateDescriptor<>("registers", Types.POJO(Registers.class));
            states = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(
                RiotEtl.Observation seen, Context context, Collector<Result> counts)
                throws Exception {
            Registers registers = states.value() == null ? new Registers() : states.value();
            long hash = hash(seen.value);
            int index = (int) (hash >>> 64 - INDEX_BITS);
            int rank = 1 + Long.numberOfLeadingZeros(hash << INDEX_BITS | 1);
            if (rank > registers.ranks[index]) {
                registers.total += rank - registers.ranks[index];
                registers.ranks[index] = rank;
            }
            registers.seen++;
            states.update(registers);
            if (registers.seen % SEEN_PER_RESULT == 0) {
                double mean = (double) registers.total / REGISTERS;
                double count = LOG_LOG_FACTOR * REGISTERS * Math.pow(2, mean);
                counts.collect(result("distinct", seen.quantity, seen.time, count));
            }
        }
    }

    /** The highest rank of a hash in every register, and their sum. */
    public static final class Registers {
        public long seen, total;
        public int[] ranks = new int[DistinctCount.REGISTERS];
    }

    static final class Publish implements MapFunction<Result, byte[]> {
        private int packets;

        @Override
        public byte[] map(Result result) {
            String entry = "{\"n\":\"" + result.of + "\",\"v\":" + result.value + "}";
            String message = "{\"bt\":" + result.time + ",\"e\":[" + entry + "]}";
            return RiotEtl.packet("city/" + result.statistic, packets++, message);
        }
    }
}
