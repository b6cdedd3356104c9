/*
 * Variable tolls on an expressway: from the positions that vehicles report every 30 seconds follow
 * speeds and numbers of vehicles on every mile, accidents, warnings, and tolls.
 */
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

public final class LinearRoad {
    static final int VEHICLES = 20_000, SECONDS = 30, MILES = 100, FEET = 5_280, EXIT_LANE = 4;
    static final int POSITION_REPORT = 0, BALANCE_QUERY = 2, EXPENSES_QUERY = 3;
    static final int HISTORY_MINUTES = 5, STOPPED_AFTER = 4, WARNED_MILES = 4;
    static final int FREE_CARS = 50, FREE_SPEED = 40;
    static final double POSITION_REPORTS = 0.9885696197046802;

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Report> reports =
                Application.source(env, "source", arguments, LinearRoad::line, Types.STRING)
                        .map(LinearRoad::parse)
                        .returns(int[].class)
                        .name("parser")
                        .flatMap(LinearRoad::dispatch)
                        .returns(Report.class)
                        .name("dispatcher")
                        .rebalance();
        DataStream<Toll> byVelocity =
                reports.map(new AverageSpeed())
                        .name("average-speed")
                        .map(new LatestAverageVelocity())
                        .name("latest-average-velocity")
                        .map(velocity -> toll(velocity, FREE_CARS + 1, velocity.value))
                        .returns(Toll.class)
                        .name("toll-by-velocity");
        DataStream<Toll> byCount =
                reports.map(new CountVehicles())
                        .name("count-vehicles")
                        .map(count -> toll(count, (int) count.value, 0))
                        .returns(Toll.class)
                        .name("toll-by-count");
        reports.flatMap(new DetectAccidents()).name("accident-detection");
        reports.flatMap(new NotifyOfAccidents()).name("accident-notification");
        DataStream<Toll> byPosition = reports.map(new TollByPosition()).name("toll-by-position");
        Application.sink(byPosition.union(byCount, byVelocity), "sink");
        env.execute("linear-road");
    }

    /** Positions of vehicles at their own speeds; some pairs drive together and crash at times. */
    static String line(long number) {
        long vehicle = number % VEHICLES, round = number / VEHICLES, time = SECONDS * round;
        if (Application.fraction(number) >= POSITION_REPORTS) {
            long type = number % 2 == 0 ? BALANCE_QUERY : EXPENSES_QUERY;
            String query = type + "," + time + "," + vehicle + ",-1,0,-1,-1,-1,-1,";
            return query + number % 1_000_000 + ",-1,-1,-1,-1," + number % 70;
        }
        boolean crashes = vehicle % 100 < 2;
        long driver = crashes ? vehicle / 100 * 100 : vehicle, rounds = round + driver;
        long driven = crashes ? rounds / 120 * 114 + Math.min(rounds % 120, 114) : rounds;
        long looks = Application.scrambled(driver) >>> 1, usual = 10 + looks % 60;
        long speed = crashes && rounds % 120 > 114 ? 0 : usual;
        long feet = (looks % 500_000 + usual * FEET * SECONDS / 3_600 * driven) % (MILES * FEET);
        long direction = driver / 2 % 2, position = direction == 0 ? feet : MILES * FEET - 1 - feet;
        long lane = feet / FEET == MILES - 1 ? EXIT_LANE : 1 + looks % 3;
        String report = "0," + time + "," + vehicle + "," + speed + ",0," + lane + "," + direction;
        return report + "," + position / FEET + "," + position + ",-1,-1,-1,-1,-1,-1";
    }

    static int[] parse(String line) {
        String[] fields = line.split(",");
        int[] numbers = new int[fields.length];
        for (int i = 0; i < fields.length; i++) {
            numbers[i] = Integer.parseInt(fields[i]);
        }
        return numbers;
    }

    static void dispatch(int[] fields, Collector<Report> reports) {
        if (fields[0] != POSITION_REPORT) {
            return;
        }
        Report report = new Report();
        report.time = fields[1];
        report.vehicle = fields[2];
        report.speed = fields[3];
        report.lane = fields[5];
        report.direction = fields[6];
        report.mile = fields[7];
        report.position = fields[8];
        reports.collect(report);
    }

    static Statistic statistic(int minute, int place, double value) {
        Statistic statistic = new Statistic();
        statistic.minute = minute;
        statistic.place = place;
        statistic.value = value;
        return statistic;
    }

    static Toll toll(Statistic known, int cars, double velocity) {
        return toll(60 * known.minute, -1, known.place, cars, velocity);
    }

    /** What to pay for a mile: nothing where there are few cars or they are fast. */
    static Toll toll(int time, int vehicle, int place, int cars, double velocity) {
        int crowd = velocity < FREE_SPEED ? Math.max(0, cars - FREE_CARS) : 0;
        Toll toll = new Toll();
        toll.time = time;
        toll.vehicle = vehicle;
        toll.place = place;
        toll.amount = 2 * crowd * crowd;
        toll.velocity = velocity;
        return toll;
    }

    /** Where a vehicle is. */
    public static final class Report {
        public int time, vehicle, speed, lane, direction, mile, position;

        int minute() {
            return time / 60;
        }

        /** A mile in one direction. */
        int place() {
            return direction * MILES + mile;
        }
    }

    /** What is known of a mile in one minute. */
    public static final class Statistic {
        public int minute, place;
        public double value;
    }

    /** What a vehicle, or any where it is -1, is to pay on a mile. */
    public static final class Toll {
        public int time, vehicle, place, amount;
        public double velocity;
    }

    /** Mean over the vehicles on a mile of their mean speeds in this minute. */
    static final class AverageSpeed implements MapFunction<Report, Statistic> {
        private final Map<Integer, Minute> minutes = new HashMap<>();

        @Override
        public Statistic map(Report report) {
            Minute minute = minutes.get(report.place());
            if (minute == null || minute.number != report.minute()) {
                minute = new Minute();
                minute.number = report.minute();
                minutes.put(report.place(), minute);
            }
            Speed speed = minute.speeds.computeIfAbsent(report.vehicle, unseen -> new Speed());
            minute.total -= speed.mean;
            speed.reports++;
            speed.mean += (report.speed - speed.mean) / speed.reports;
            minute.total += speed.mean;
            return statistic(minute.number, report.place(), minute.total / minute.speeds.size());
        }

        private static final class Minute {
            int number;
            double total;
            final Map<Integer, Speed> speeds = new HashMap<>();
        }

        private static final class Speed {
            int reports;
            double mean;
        }
    }

    /** Mean speed on a mile in the five minutes before. */
    static final class LatestAverageVelocity implements MapFunction<Statistic, Statistic> {
        private final Map<Integer, Deque<Statistic>> minutes = new HashMap<>();

        @Override
        public Statistic map(Statistic speed) {
            int minute = speed.minute;
            Deque<Statistic> history =
                    minutes.computeIfAbsent(speed.place, empty -> new ArrayDeque<>());
            if (!history.isEmpty() && history.getLast().minute == minute) {
                history.removeLast();
            }
            while (!history.isEmpty() && history.getFirst().minute < minute - HISTORY_MINUTES) {
                history.removeFirst();
            }
            double total = 0;
            for (Statistic before : history) {
                total += before.value;
            }
            double velocity = history.isEmpty() ? speed.value : total / history.size();
            history.addLast(speed);
            return statistic(minute, speed.place, velocity);
        }
    }

    /** Different vehicles on a mile in this minute. */
    static final class CountVehicles implements MapFunction<Report, Statistic> {
        private final Map<Integer, Set<Integer>> vehicles = new HashMap<>();
        private final int[] minutes = new int[2 * MILES];

        @Override
        public Statistic map(Report report) {
            int minute = report.minute(), place = report.place();
            Set<Integer> seen = vehicles.computeIfAbsent(place, empty -> new HashSet<>());
            if (minutes[place] != minute) {
                minutes[place] = minute;
                seen.clear();
            }
            seen.add(report.vehicle);
            return statistic(minute, place, seen.size());
        }
    }

    /** Finds two vehicles that have stopped at the same spot, which are four equal reports each. */
    static final class DetectAccidents implements FlatMapFunction<Report, Statistic> {
        private final Map<Integer, Stop> stops = new HashMap<>();
        private final Map<Integer, Set<Integer>> stopped = new HashMap<>();

        @Override
        public void flatMap(Report report, Collector<Statistic> accidents) {
            int spot = report.direction * MILES * FEET + report.position;
            Stop stop = stops.computeIfAbsent(report.vehicle, unseen -> new Stop());
            if (stop.spot != spot) {
                leave(stop.spot, report.vehicle);
                stop.spot = spot;
                stop.reports = 0;
            }
            if (++stop.reports >= STOPPED_AFTER) {
                Set<Integer> here = stopped.computeIfAbsent(spot, empty -> new HashSet<>());
                here.add(report.vehicle);
                if (here.size() > 1) {
                    accidents.collect(statistic(report.minute(), report.place(), here.size()));
                }
            }
        }

        private void leave(int spot, int vehicle) {
            Set<Integer> left = stopped.get(spot);
            if (left != null && left.remove(vehicle) && left.isEmpty()) {
                stopped.remove(spot);
            }
        }

        private static final class Stop {
            int spot, reports;
        }
    }

    /** Warns a vehicle that comes to a mile of vehicles that stand on the next ones. */
    static final class NotifyOfAccidents implements FlatMapFunction<Report, String> {
        private final Map<Integer, Integer> places = new HashMap<>();
        private final Map<Integer, Integer> standstills = new HashMap<>();

        @Override
        public void flatMap(Report report, Collector<String> warnings) {
            if (report.speed == 0) {
                standstills.put(report.place(), report.minute());
            }
            Integer before = places.put(report.vehicle, report.place());
            if (report.lane == EXIT_LANE || before != null && before == report.place()) {
                return;
            }
            int forward = report.direction == 0 ? 1 : -1;
            for (int ahead = 0; ahead <= WARNED_MILES; ahead++) {
                int mile = report.mile + forward * ahead;
                Integer minute = standstills.get(report.direction * MILES + mile);
                if (mile >= 0 && mile < MILES && minute != null && minute >= report.minute() - 1) {
                    warnings.collect(report.time + "," + report.vehicle + ",accident at " + mile);
                    return;
                }
            }
        }
    }

    /** Charges a vehicle that comes to a mile, by the vehicles last seen there. */
    static final class TollByPosition implements MapFunction<Report, Toll> {
        private final Map<Integer, Report> last = new HashMap<>();
        private final int[] cars = new int[2 * MILES], speeds = new int[2 * MILES];

        @Override
        public Toll map(Report report) {
            int place = report.place();
            Report before = last.put(report.vehicle, report);
            if (before != null) {
                cars[before.place()]--;
                speeds[before.place()] -= before.speed;
            }
            cars[place]++;
            speeds[place] += report.speed;
            boolean stays = before != null && before.place() == place;
            int charged = stays || report.lane == EXIT_LANE ? 0 : cars[place];
            double velocity = (double) speeds[place] / cars[place];
            return toll(report.time, report.vehicle, place, charged, velocity);
        }
    }
}
