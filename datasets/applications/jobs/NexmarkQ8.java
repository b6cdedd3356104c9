/* Nexmark query 8: who came and opened an auction within the same ten seconds. */
import java.time.Duration;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public final class NexmarkQ8 {
    static final Duration WINDOW = Duration.ofSeconds(10);
    /** How long a result of one window waits for the other's: less than until the next results. */
    static final Duration PATIENCE = Duration.ofSeconds(5);
    /** Number, name and end of the window. */
    static final TypeInformation<Tuple3<Long, String, Long>> PERSON =
            Types.TUPLE(Types.LONG, Types.STRING, Types.LONG);
    /** Number and end of the window. */
    static final TypeInformation<Tuple2<Long, Long>> SELLER = Types.TUPLE(Types.LONG, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Auctions.Event> events = Auctions.events(env, arguments);
        DataStream<Tuple3<Long, String, Long>> persons =
                Auctions.persons(events)
                        .keyBy(person -> person.id)
                        .window(TumblingProcessingTimeWindows.of(WINDOW))
                        .reduce((first, later) -> first, NexmarkQ8::person, PERSON)
                        .name("new-persons");
        DataStream<Tuple2<Long, Long>> sellers =
                Auctions.auctions(events)
                        .keyBy(auction -> auction.seller)
                        .window(TumblingProcessingTimeWindows.of(WINDOW))
                        .reduce((first, later) -> first, NexmarkQ8::seller, SELLER)
                        .name("sellers");
        Application.sink(
                persons.keyBy(person -> person.f0)
                        .connect(sellers.keyBy(seller -> seller.f0))
                        .process(new Join())
                        .name("join"),
                "sink");
        env.execute("nexmark-q8");
    }

    static void person(
            Long id,
            TimeWindow window,
            Iterable<Auctions.Person> first,
            Collector<Tuple3<Long, String, Long>> persons) {
        persons.collect(Tuple3.of(id, first.iterator().next().name, window.getEnd()));
    }

    static void seller(
            Long id,
            TimeWindow window,
            Iterable<Auctions.Auction> first,
            Collector<Tuple2<Long, Long>> sellers) {
        sellers.collect(Tuple2.of(id, window.getEnd()));
    }

    /** Persons and sellers of the same number and window, whichever comes first. */
    static final class Join
            extends KeyedCoProcessFunction<
                    Long,
                    Tuple3<Long, String, Long>,
                    Tuple2<Long, Long>,
                    Tuple3<Long, String, Long>> {
        private transient ValueState<Tuple3<Long, String, Long>> newcomer;
        private transient ValueState<Long> sold;

        @Override
        public void open(OpenContext context) {
            newcomer = getRuntimeContext().getState(new ValueStateDescriptor<>("person", PERSON));
            sold = getRuntimeContext().getState(new ValueStateDescriptor<>("sold", Types.LONG));
        }

        @Override
        public void processElement1(
                Tuple3<Long, String, Long> person,
                Context context,
                Collector<Tuple3<Long, String, Long>> newSellers)
                throws Exception {
            if (person.f2.equals(sold.value())) {
                newSellers.collect(person);
                sold.clear();
            } else {
                newcomer.update(person);
                expire(context);
            }
        }

        @Override
        public void processElement2(
                Tuple2<Long, Long> seller,
                Context context,
                Collector<Tuple3<Long, String, Long>> newSellers)
                throws Exception {
            Tuple3<Long, String, Long> person = newcomer.value();
            if (person != null && person.f2.equals(seller.f1)) {
                newSellers.collect(person);
                newcomer.clear();
            } else {
                sold.update(seller.f1);
                expire(context);
            }
        }

        private static void expire(Context context) {
            long now = context.timerService().currentProcessingTime();
            context.timerService().registerProcessingTimeTimer(now + PATIENCE.toMillis());
        }

        @Override
        public void onTimer(
                long time,
                OnTimerContext context,
                Collector<Tuple3<Long, String, Long>> newSellers) {
            newcomer.clear();
            sold.clear();
        }
    }
}
