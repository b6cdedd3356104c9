/*
 * Watches the sensors of a building: the source parses their readings; temperatures far from the
 * sensor's moving average are told.
 */
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class SpikeDetection {
    static final int SENSORS = 54, WINDOW = 1_000;
    static final long NANOS_PER_EPOCH = 31_000_000_000L, EPOCHS_PER_DAY = 2_787;
    static final double THRESHOLD = 0.03, SPIKES = 0.01;
    static final LocalDateTime START = LocalDateTime.of(2004, 3, 1, 0, 0);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Reading> readings =
                Application.source(
                        env,
                        "source",
                        arguments,
                        number -> parse(line(number)),
                        Types.POJO(Reading.class));
        DataStream<Averaged> spikes =
                readings.keyBy(reading -> reading.sensor)
                        .process(new MovingAverage())
                        .name("moving-average")
                        .filter(SpikeDetection::isSpike)
                        .name("spike-detector");
        Application.sink(spikes, "sink");
        env.execute("spike-detection");
    }

    /** Date, time, epoch, sensor, temperature, humidity, light and voltage. */
    static String line(long number) {
        long epoch = number / SENSORS, sensor = 1 + number % SENSORS;
        LocalDateTime time = START.plusNanos(number * NANOS_PER_EPOCH / SENSORS);
        double noise = Application.fraction(number);
        return time.toString().replace('T', ' ') + " " + epoch + " " + sensor
                + " " + rounded(temperature(epoch, sensor, number))
                + " " + rounded(40 + noise) + " " + rounded(120 + 10 * noise) + " 2.69";
    }

    /** Degrees in an air-conditioned room, with measuring errors and now and then a wrong value. */
    static double temperature(long epoch, long sensor, long number) {
        double day = 2 * Math.PI * epoch / EPOCHS_PER_DAY;
        double level = 18 + 0.1 * sensor + 0.15 * Math.sin(day);
        double error = 0.4 * (Application.fraction(~number) - 0.5);
        boolean spike = Application.fraction(number ^ Long.MIN_VALUE) < SPIKES;
        return spike ? 1.2 * level + error : level + error;
    }

    static double rounded(double number) {
        return Math.round(number * 10_000) / 10_000.0;
    }

    static Reading parse(String line) {
        String[] fields = line.split(" ");
        LocalDateTime time = LocalDateTime.parse(fields[0] + "T" + fields[1]);
        Reading reading = new Reading();
        reading.time = time.toInstant(ZoneOffset.UTC).toEpochMilli();
        reading.sensor = Integer.parseInt(fields[3]);
        reading.temperature = Double.parseDouble(fields[4]);
        reading.humidity = Double.parseDouble(fields[5]);
        reading.light = Double.parseDouble(fields[6]);
        reading.voltage = Double.parseDouble(fields[7]);
        return reading;
    }

    static boolean isSpike(Averaged reading) {
        return Math.abs(reading.temperature - reading.average) > THRESHOLD * reading.average;
    }

    /** What a sensor measured; the time is in milliseconds since 1970. */
    public static final class Reading {
        public int sensor;
        public long time;
        public double temperature, humidity, light, voltage;
    }

    /** A temperature beside the average of the sensor's last ones. */
    public static final class Averaged {
        public int sensor;
        public long time;
        public double temperature, average;
    }

    /** The average of the last temperatures, which are kept in a ring. */
    static final class MovingAverage extends KeyedProcessFunction<Integer, Reading, Averaged> {
        private transient MapState<Integer, Double> ring;
        private transient ValueState<Tuple2<Long, Double>> countAndSum;

        @Override
        public void open(OpenContext context) {
            RuntimeContext states = getRuntimeContext();
            ring = states.getMapState(new MapStateDescriptor<>("ring", Types.INT, Types.DOUBLE));
            countAndSum =
                    states.getState(
                            new ValueStateDescriptor<>(
                                    "count-and-sum", Types.TUPLE(Types.LONG, Types.DOUBLE)));
        }

        @Override
        public void processElement(Reading reading, Context context, Collector<Averaged> averages)
                throws Exception {
            Tuple2<Long, Double> before = countAndSum.value();
            long count = before == null ? 0 : before.f0;
            double sum = before == null ? 0 : before.f1;
            int place = (int) (count % WINDOW);
            if (count >= WINDOW) {
                sum -= ring.get(place);
            }
            sum += reading.temperature;
            ring.put(place, reading.temperature);
            countAndSum.update(Tuple2.of(count + 1, sum));
            Averaged averaged = new Averaged();
            averaged.sensor = reading.sensor;
            averaged.time = reading.time;
            averaged.temperature = reading.temperature;
            averaged.average = sum / Math.min(count + 1, WINDOW);
            averages.collect(averaged);
        }
    }
}
