/*
 * Watches the traffic of a city: the source parses the positions that taxis send; each is matched
 * to the road it lies on, and the speed of every road is averaged.
 */
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class TrafficMonitoring {
    static final int TAXIS = 10_000, ROADS = 5_000, SEGMENTS = 20, LAST_SPEEDS = 30;
    /** Lengths in metres: of the city's sides, of a road's segments, of cells, from the road. */
    static final double CITY = 40_000, SEGMENT = 100, CELL = 250, TOLERANCE = 30;
    static final double WEST = 116.15, SOUTH = 39.75;
    static final double METRES_PER_LATITUDE = 111_320, METRES_PER_LONGITUDE = 85_590;
    static final LocalDateTime START = LocalDateTime.of(2009, 3, 10, 0, 0);
    static final ZoneOffset ZONE = ZoneOffset.ofHours(8);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Position> positions =
                Application.source(
                        env,
                        "source",
                        arguments,
                        number -> parse(line(number)),
                        Types.POJO(Position.class));
        DataStream<Tuple3<Integer, Double, Integer>> speeds =
                positions.rebalance()
                        .flatMap(new MatchRoad())
                        .name("map-matcher")
                        .keyBy(matched -> matched.f0)
                        .process(new AverageSpeed())
                        .name("speed-calculator");
        Application.sink(speeds, "sink");
        env.execute("traffic-monitoring");
    }

    /** Taxi, time, longitude, latitude, speed and bearing; every fifth is far from any road. */
    static String line(long number) {
        long seed = 6 * number;
        int road = (int) (Math.pow(ROADS + 1, Application.fraction(seed)) - 1);
        double along = SEGMENTS * Application.fraction(seed + 1);
        double error = Application.fraction(seed + 2) < 0.2 ? 500 : 15;
        double[] point = point(road, along), next = point(road, along + 0.1);
        double x = point[0] + error * (2 * Application.fraction(seed + 3) - 1);
        double y = point[1] + error * (2 * Application.fraction(seed + 4) - 1);
        double usual = 20 + 40 * Application.fraction(road);
        long speed = Math.round(usual * (0.7 + 0.6 * Application.fraction(seed + 5)));
        long turned = 180 * (Application.scrambled(seed) & 1);
        long bearing = Math.round(bearing(point, next) + turned) % 360;
        return "taxi" + number % TAXIS + "," + START.plusSeconds(number / TAXIS * 30)
                + "," + rounded(WEST + x / METRES_PER_LONGITUDE)
                + "," + rounded(SOUTH + y / METRES_PER_LATITUDE) + "," + speed + "," + bearing;
    }

    /** Where a road is after so many segments, in metres east and north of the city's corner. */
    static double[] point(int road, double segments) {
        double heading = 2 * Math.PI * Application.fraction(~(3L * road));
        double along = SEGMENT * segments, aside = 20 * Math.sin(2 * Math.PI * along / 1_000);
        double sin = Math.sin(heading), cos = Math.cos(heading);
        double x = CITY * Application.fraction(~(3L * road + 1)) + along * sin + aside * cos;
        double y = CITY * Application.fraction(~(3L * road + 2)) + along * cos - aside * sin;
        return new double[] {x, y};
    }

    /** Degrees clockwise from north. */
    static double bearing(double[] from, double[] to) {
        return (Math.toDegrees(Math.atan2(to[0] - from[0], to[1] - from[1])) + 360) % 360;
    }

    static double rounded(double degrees) {
        return Math.round(degrees * 100_000) / 100_000.0;
    }

    static Position parse(String line) {
        String[] fields = line.split(",");
        Position position = new Position();
        position.taxi = fields[0];
        position.time = LocalDateTime.parse(fields[1]).toInstant(ZONE).toEpochMilli();
        position.longitude = Double.parseDouble(fields[2]);
        position.latitude = Double.parseDouble(fields[3]);
        position.speed = Integer.parseInt(fields[4]);
        position.bearing = Integer.parseInt(fields[5]);
        return position;
    }

    /** Where a taxi was and how it moved: km/h, and degrees clockwise from north. */
    public static final class Position {
        public String taxi;
        public long time;
        public double longitude, latitude;
        public int speed, bearing;
    }

    /** A straight piece of a road. */
    record Segment(int road, double x, double y, double dx, double dy, double heading) {
        static Segment of(int road, int number) {
            double[] from = point(road, number), to = point(road, number + 1);
            return new Segment(
                    road, from[0], from[1], to[0] - from[0], to[1] - from[1], bearing(from, to));
        }

        double distance(double atX, double atY) {
            double along = ((atX - x) * dx + (atY - y) * dy) / (dx * dx + dy * dy);
            double nearest = Math.max(0, Math.min(1, along));
            return Math.hypot(atX - x - nearest * dx, atY - y - nearest * dy);
        }

        /** Whether a movement follows the segment, either way. */
        boolean isAlong(double movement) {
            double turned = Math.abs(movement - heading) % 180;
            return Math.min(turned, 180 - turned) < 30;
        }
    }

    /** Tells the road nearest to a position, if one is near; segments are found by grid cells. */
    static final class MatchRoad extends RichFlatMapFunction<Position, Tuple2<Integer, Integer>> {
        private transient Map<Long, List<Segment>> cells;

        @Override
        public void open(OpenContext context) {
            cells = new HashMap<>();
            for (int i = 0; i < ROADS * SEGMENTS; i++) {
                Segment segment = Segment.of(i / SEGMENTS, i % SEGMENTS);
                long cell = cell(segment.x, segment.y);
                cells.computeIfAbsent(cell, none -> new ArrayList<>()).add(segment);
            }
        }

        private static long cell(double x, double y) {
            return (long) Math.floor(x / CELL) << 32 | (long) Math.floor(y / CELL) & 0xffffffffL;
        }

        @Override
        public void flatMap(Position position, Collector<Tuple2<Integer, Integer>> speeds) {
            double x = (position.longitude - WEST) * METRES_PER_LONGITUDE;
            double y = (position.latitude - SOUTH) * METRES_PER_LATITUDE;
            Segment nearest = null;
            double least = TOLERANCE;
            for (int i = 0; i < 9; i++) {
                long cell = cell(x + (i % 3 - 1) * CELL, y + (i / 3 - 1) * CELL);
                for (Segment segment : cells.getOrDefault(cell, List.of())) {
                    double distance = segment.distance(x, y);
                    if (distance < least && segment.isAlong(position.bearing)) {
                        nearest = segment;
                        least = distance;
                    }
                }
            }
            if (nearest != null) {
                speeds.collect(Tuple2.of(nearest.road, position.speed));
            }
        }
    }

    /** The average of a road's last speeds, without those far from the others. */
    static final class AverageSpeed
            extends KeyedProcessFunction<
                    Integer, Tuple2<Integer, Integer>, Tuple3<Integer, Double, Integer>> {
        private transient ListState<Integer> lastSpeeds;

        @Override
        public void open(OpenContext context) {
            ListStateDescriptor<Integer> speeds = new ListStateDescriptor<>("speeds", Types.INT);
            lastSpeeds = getRuntimeContext().getListState(speeds);
        }

        @Override
        public void processElement(
                Tuple2<Integer, Integer> matched,
                Context context,
                Collector<Tuple3<Integer, Double, Integer>> averages)
                throws Exception {
            List<Integer> speeds = new ArrayList<>(LAST_SPEEDS + 1);
            lastSpeeds.get().forEach(speeds::add);
            speeds.add(matched.f1);
            if (speeds.size() > LAST_SPEEDS) {
                speeds.remove(0);
            }
            lastSpeeds.update(speeds);
            averages.collect(Tuple3.of(matched.f0, usual(speeds), speeds.size()));
        }

        /** The mean of the speeds within two standard deviations of the mean of all. */
        private static double usual(List<Integer> speeds) {
            double sum = 0, squares = 0;
            for (int speed : speeds) {
                sum += speed;
                squares += speed * speed;
            }
            double mean = sum / speeds.size();
            double variance = Math.max(0, squares / speeds.size() - mean * mean);
            double usualSum = 0;
            int usual = 0;
            for (int speed : speeds) {
                if ((speed - mean) * (speed - mean) <= 4 * variance + 1e-9) {
                    usualSum += speed;
                    usual++;
                }
            }
            return usualSum / usual;
        }
    }
}
