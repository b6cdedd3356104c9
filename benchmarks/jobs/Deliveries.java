/*
 * Orders of meals joined with their deliveries in windows of event time, which late events of a
 * restaurant without a network may still reach; couriers are rated by what they delivered.
 * Arguments: offered events per second; share of events that belong to one courier (0).
 */
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.util.Collector;

public final class Deliveries {
    static final int COURIERS = 3_000, ROUTE = 24;
    /** So many orders later an order is delivered. */
    static final long LATER = 200;
    static final double LATE = 0.02;
    static final long LATE_MS = 1_500;

    public static void main(String[] arguments) throws Exception {
        double skew = arguments.length > 1 ? Double.parseDouble(arguments[1]) : 0;
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Event> events =
                Application.source(
                                env,
                                "events",
                                new String[] {arguments[0]},
                                number -> event(number, skew),
                                Types.POJO(Event.class))
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Event>forBoundedOutOfOrderness(
                                                Duration.ofMillis(300))
                                        .withTimestampAssigner((event, before) -> event.time));
        DataStream<Event> orders = events.filter(event -> !event.isDelivery).name("orders");
        DataStream<Event> deliveries = events.filter(event -> event.isDelivery).name("deliveries");
        DataStream<Trip> trips =
                orders.join(deliveries)
                        .where(order -> order.order)
                        .equalTo(delivery -> delivery.order)
                        .window(TumblingEventTimeWindows.of(Duration.ofSeconds(1)))
                        .allowedLateness(Duration.ofSeconds(3))
                        .apply(Deliveries::trip, Types.POJO(Trip.class));
        Application.sink(
                trips.keyBy(trip -> trip.courier).process(new Rate()).name("rate"), "ratings");
        env.execute("deliveries");
    }

    /** Even numbers order a meal, odd ones deliver what was ordered a little before. */
    static Event event(long number, double skew) {
        Event event = new Event();
        event.isDelivery = number % 2 == 1;
        event.order = number / 2 - (event.isDelivery ? LATER : 0);
        boolean isSkewed = Application.fraction(event.order) < skew;
        event.courier =
                isSkewed ? 0 : Math.floorMod(Application.scrambled(event.order), COURIERS);
        boolean isLate = Application.fraction(~event.order) < LATE;
        event.time = System.currentTimeMillis() - (isLate ? LATE_MS : 0);
        event.address = "street " + event.order % 9973 + ", door " + event.order % 97;
        return event;
    }

    static Trip trip(Event order, Event delivery) {
        Trip trip = new Trip();
        trip.courier = order.courier;
        trip.millis = delivery.time - order.time;
        trip.route = new double[ROUTE];
        for (int i = 0; i < ROUTE; i++) {
            trip.route[i] = Math.sin(order.order + i) * Math.cos(order.courier - i);
        }
        return trip;
    }

    /** A meal that is ordered or delivered. */
    public static final class Event {
        public boolean isDelivery;
        public long order, time;
        public int courier;
        public String address;
    }

    /** A courier's way with a meal. */
    public static final class Trip {
        public int courier;
        public long millis;
        public double[] route;
    }

    /** Mean of the lengths of a courier's ways, the last ones counting most. */
    static final class Rate extends KeyedProcessFunction<Integer, Trip, String> {
        private transient ValueState<Double> mean;

        @Override
        public void open(OpenContext context) {
            mean = getRuntimeContext().getState(new ValueStateDescriptor<>("mean", Types.DOUBLE));
        }

        @Override
        public void processElement(Trip trip, Context context, Collector<String> ratings)
                throws Exception {
            double length = 0;
            for (int i = 1; i < trip.route.length; i++) {
                length += Math.hypot(trip.route[i] - trip.route[i - 1], 0.1);
            }
            double before = mean.value() == null ? length : mean.value();
            mean.update(0.9 * before + 0.1 * length);
            ratings.collect(trip.courier + ": " + mean.value() + " in " + trip.millis + " ms");
        }
    }
}
