/* Sensor messages of a city: parsed, cleaned, joined, annotated, and published again. */
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFilterFunction;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class RiotEtl {
    static final int SENSORS = 500, UNKNOWN_SENSORS = 5, MILLIS_PER_MESSAGE = 20;
    static final long START = 1_750_000_000_000L;
    static final List<String> QUANTITIES =
            List.of("temperature", "humidity", "light", "dust", "airquality");
    static final List<String> UNITS = List.of("Cel", "%RH", "lx", "pcs", "ppm");
    static final double[] LEAST = {-20, 5, 0, 100, 10}, MOST = {45, 98, 30_000, 6_000, 80};
    static final List<String> PLACES = List.of("district", "street", "owner", "installed");
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<byte[]> packets =
                messages(env, arguments)
                        .flatMap(RiotEtl::parse)
                        .returns(Observation.class)
                        .name("senml-parse")
                        .keyBy(seen -> seen.quantity)
                        .map(RiotEtl::checkRange)
                        .returns(Observation.class)
                        .name("range-filter")
                        .keyBy(seen -> seen.sensor)
                        .filter(new KnownSensors())
                        .name("bloom-filter")
                        .keyBy(seen -> seen.sensor + seen.quantity)
                        .process(new Interpolate())
                        .name("interpolation")
                        .keyBy(seen -> seen.message)
                        .process(new Join())
                        .name("join")
                        .map(new Annotate())
                        .name("annotation")
                        .map(RiotEtl::senml)
                        .returns(Types.STRING)
                        .name("csv-to-senml")
                        .map(new Publish())
                        .name("mqtt-publish");
        Application.sink(packets, "sink");
        env.execute("riot-etl");
    }

    /** Numbered messages of sensors. */
    static DataStream<Tuple2<Long, String>> messages(
            StreamExecutionEnvironment env, String[] arguments) {
        return Application.source(
                env, "source", arguments, RiotEtl::message, Types.TUPLE(Types.LONG, Types.STRING));
    }

    /** What a sensor measured in SenML: values around its own level; one in a hundred is wrong. */
    static Tuple2<Long, String> message(long number) {
        long sensor = (Application.scrambled(number) >>> 1) % (SENSORS + UNKNOWN_SENSORS);
        StringBuilder text = new StringBuilder(450);
        text.append("{\"bt\":").append(START + number * MILLIS_PER_MESSAGE);
        text.append(",\"e\":[{\"n\":\"source\",\"u\":\"string\",\"sv\":\"").append(name(sensor));
        text.append("\"},{\"n\":\"longitude\",\"u\":\"lon\",\"v\":").append(13 + sensor / 1000.0);
        text.append("},{\"n\":\"latitude\",\"u\":\"lat\",\"v\":").append(52 + sensor % 97 / 200.0);
        for (int i = 0; i < QUANTITIES.size(); i++) {
            double noise = Application.fraction(5 * number + i);
            double level = Application.fraction(5 * sensor + i) * 0.8 + noise * 0.2;
            double value = noise < 0.01 ? -MOST[i] : LEAST[i] + level * (MOST[i] - LEAST[i]);
            text.append("},{\"n\":\"").append(QUANTITIES.get(i));
            text.append("\",\"u\":\"").append(UNITS.get(i));
            text.append("\",\"v\":").append(Math.round(100 * value) / 100.0);
        }
        return Tuple2.of(number, text.append("}]}").toString());
    }

    static String name(long sensor) {
        return "city-" + Long.toString(Application.scrambled(~sensor) >>> 4, 36);
    }

    static void parse(Tuple2<Long, String> message, Collector<Observation> observations)
            throws JsonProcessingException {
        JsonNode root = JSON.readTree(message.f1);
        Map<String, JsonNode> entries = new HashMap<>();
        root.get("e").forEach(entry -> entries.put(entry.get("n").asText(), entry));
        String sensor = entries.get("source").get("sv").asText();
        for (String quantity : QUANTITIES) {
            Observation seen = new Observation();
            seen.message = message.f0;
            seen.time = root.get("bt").asLong();
            seen.sensor = sensor;
            seen.longitude = entries.get("longitude").get("v").asDouble();
            seen.latitude = entries.get("latitude").get("v").asDouble();
            seen.quantity = quantity;
            seen.value = entries.get(quantity).get("v").asDouble();
            observations.collect(seen);
        }
    }

    /** Takes out values that cannot be; the observation itself goes on, so that it is joined. */
    static Observation checkRange(Observation seen) {
        int quantity = QUANTITIES.indexOf(seen.quantity);
        if (seen.value < LEAST[quantity] || seen.value > MOST[quantity]) {
            seen.value = Double.NaN;
        }
        return seen;
    }

    static String senml(String row) throws JsonProcessingException {
        String[] fields = row.split(",", -1);
        ObjectNode root = JSON.createObjectNode().put("bt", Long.parseLong(fields[0]));
        ArrayNode entries = root.putArray("e");
        entries.addObject().put("n", "source").put("u", "string").put("sv", fields[1]);
        add(entries, "longitude", "lon", fields[2]);
        add(entries, "latitude", "lat", fields[3]);
        for (int i = 0; i < QUANTITIES.size(); i++) {
            add(entries, QUANTITIES.get(i), UNITS.get(i), fields[4 + i]);
        }
        for (int i = 0; i < PLACES.size(); i++) {
            String known = fields[4 + QUANTITIES.size() + i];
            entries.addObject().put("n", PLACES.get(i)).put("u", "string").put("sv", known);
        }
        return JSON.writeValueAsString(root);
    }

    static void add(ArrayNode entries, String name, String unit, String value) {
        if (!value.isEmpty()) {
            entries.addObject().put("n", name).put("u", unit).put("v", Double.parseDouble(value));
        }
    }

    /** MQTT's packet that publishes a message, to be confirmed once. */
    static byte[] packet(String topic, int number, String message) {
        byte[] name = topic.getBytes(StandardCharsets.UTF_8);
        byte[] payload = message.getBytes(StandardCharsets.UTF_8);
        int length = 2 + name.length + 2 + payload.length;
        ByteBuffer packet = ByteBuffer.allocate(5 + length).put((byte) 0x32);
        int left = length;
        for (; left > 127; left >>>= 7) {
            packet.put((byte) (left & 127 | 128));
        }
        packet.put((byte) left);
        packet.putShort((short) name.length).put(name).putShort((short) (number % 65_535 + 1));
        return Arrays.copyOf(packet.put(payload).array(), packet.position());
    }

    /** A value that a sensor measured; not a number where it is not known. */
    public static final class Observation {
        public long message, time;
        public String sensor, quantity;
        public double longitude, latitude, value;
    }

    /** Lets sensors through that a Bloom filter knows. */
    static final class KnownSensors extends RichFilterFunction<Observation> {
        private static final int BITS = 1 << 13, HASHES = 5;
        private transient BitSet known;

        @Override
        public void open(OpenContext context) {
            known = new BitSet(BITS);
            for (int sensor = 0; sensor < SENSORS; sensor++) {
                for (int i = 0; i < HASHES; i++) {
                    known.set(bit(name(sensor), i));
                }
            }
        }

        @Override
        public boolean filter(Observation seen) {
            for (int i = 0; i < HASHES; i++) {
                if (!known.get(bit(seen.sensor, i))) {
                    return false;
                }
            }
            return true;
        }

        private static int bit(String sensor, int i) {
            long hash = Application.scrambled(sensor.hashCode());
            return (int) (hash + i * (hash >>> 32 | 1)) & (BITS - 1);
        }
    }

    /** Puts the mean of a sensor's last values where there is none. */
    static final class Interpolate extends KeyedProcessFunction<String, Observation, Observation> {
        private static final int LATEST = 10;
        private transient ValueState<double[]> latest;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<double[]> state =
                    new ValueStateDescriptor<>("latest", double[].class);
            latest = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(Observation seen, Context context, Collector<Observation> out)
                throws Exception {
            double[] values = latest.value() == null ? new double[0] : latest.value();
            if (Double.isNaN(seen.value)) {
                seen.value = Arrays.stream(values).average().orElse(Double.NaN);
            } else {
                int kept = Math.min(values.length, LATEST - 1);
                double[] now = new double[kept + 1];
                System.arraycopy(values, values.length - kept, now, 0, kept);
                now[kept] = seen.value;
                latest.update(now);
            }
            out.collect(seen);
        }
    }

    /** Makes a row of comma-separated values of all observations of a message. */
    static final class Join extends KeyedProcessFunction<Long, Observation, String> {
        private transient ValueState<Row> rows;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Row> state =
                    new ValueStateDescriptor<>("row", Types.POJO(Row.class));
            rows = getRuntimeContext().getState(state);
        }

        @Override
        public void processElement(Observation seen, Context context, Collector<String> out)
                throws Exception {
            Row row = rows.value() == null ? new Row() : rows.value();
            row.values[QUANTITIES.indexOf(seen.quantity)] = seen.value;
            if (++row.arrived < QUANTITIES.size()) {
                rows.update(row);
                return;
            }
            rows.clear();
            StringBuilder text = new StringBuilder(120);
            text.append(seen.time).append(',').append(seen.sensor).append(',');
            text.append(seen.longitude).append(',').append(seen.latitude);
            for (double value : row.values) {
                text.append(',').append(Double.isNaN(value) ? "" : String.valueOf(value));
            }
            out.collect(text.toString());
        }
    }

    /** The observations of a message that have arrived. */
    public static final class Row {
        public int arrived;
        public double[] values = new double[QUANTITIES.size()];
    }

    /** Adds to a row what is known of its sensor. */
    static final class Annotate extends RichMapFunction<String, String> {
        private transient Map<String, String> known;

        @Override
        public void open(OpenContext context) {
            known = new HashMap<>();
            for (int sensor = 0; sensor < SENSORS; sensor++) {
                String street = ",Street " + sensor / 5 + " No. " + (1 + sensor % 5 * 20);
                String owner = sensor % 3 == 0 ? ",Department of Works" : ",Department of Health";
                String installed = "," + (2015 + sensor % 10) + "-0" + (1 + sensor % 9) + "-15";
                known.put(name(sensor), ",District " + sensor / 50 + street + owner + installed);
            }
        }

        @Override
        public String map(String row) {
            int from = row.indexOf(',') + 1;
            String sensor = row.substring(from, row.indexOf(',', from));
            return row + known.getOrDefault(sensor, ",".repeat(PLACES.size()));
        }
    }

    static final class Publish implements MapFunction<String, byte[]> {
        private int packets;

        @Override
        public byte[] map(String message) {
            return packet("city/observations", packets++, message);
        }
    }
}
