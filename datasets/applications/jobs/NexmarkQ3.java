/* Nexmark query 3: who sells in category 10 and lives in Oregon, Idaho or California. */
import java.time.Duration;
import java.util.Set;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

public final class NexmarkQ3 {
    static final int CATEGORY = 10;
    static final Set<String> STATES = Set.of("OR", "ID", "CA");
    /** How long an auction waits for its seller, who may live elsewhere. */
    static final Duration PATIENCE = Duration.ofSeconds(30);
    /** Auction and seller. */
    static final TypeInformation<Tuple2<Long, Long>> OFFER = Types.TUPLE(Types.LONG, Types.LONG);
    /** Number, name, city and state. */
    static final TypeInformation<Tuple4<Long, String, String, String>> PERSON =
            Types.TUPLE(Types.LONG, Types.STRING, Types.STRING, Types.STRING);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Auctions.Event> events = Auctions.events(env, arguments);
        DataStream<Tuple2<Long, Long>> offers =
                Auctions.auctions(events)
                        .flatMap(NexmarkQ3::keepCategory)
                        .returns(OFFER)
                        .name("category-10");
        DataStream<Tuple4<Long, String, String, String>> sellers =
                Auctions.persons(events)
                        .flatMap(NexmarkQ3::keepLocal)
                        .returns(PERSON)
                        .name("local-persons");
        Application.sink(
                offers.keyBy(offer -> offer.f1)
                        .connect(sellers.keyBy(seller -> seller.f0))
                        .process(new Join())
                        .name("join-seller"),
                "sink");
        env.execute("nexmark-q3");
    }

    static void keepCategory(Auctions.Auction auction, Collector<Tuple2<Long, Long>> offers) {
        if (auction.category == CATEGORY) {
            offers.collect(Tuple2.of(auction.id, auction.seller));
        }
    }

    static void keepLocal(
            Auctions.Person person, Collector<Tuple4<Long, String, String, String>> local) {
        if (STATES.contains(person.state)) {
            local.collect(Tuple4.of(person.id, person.name, person.city, person.state));
        }
    }

    /** Name, city and state of sellers with their auctions, whichever comes first. */
    static final class Join
            extends KeyedCoProcessFunction<
                    Long,
                    Tuple2<Long, Long>,
                    Tuple4<Long, String, String, String>,
                    Tuple4<String, String, String, Long>> {
        private transient ValueState<Tuple4<Long, String, String, String>> seller;
        private transient ListState<Long> waiting;

        @Override
        public void open(OpenContext context) {
            ListStateDescriptor<Long> auctions = new ListStateDescriptor<>("waiting", Types.LONG);
            auctions.enableTimeToLive(StateTtlConfig.newBuilder(PATIENCE).build());
            waiting = getRuntimeContext().getListState(auctions);
            seller = getRuntimeContext().getState(new ValueStateDescriptor<>("seller", PERSON));
        }

        @Override
        public void processElement1(
                Tuple2<Long, Long> offer,
                Context context,
                Collector<Tuple4<String, String, String, Long>> sales)
                throws Exception {
            Tuple4<Long, String, String, String> known = seller.value();
            if (known == null) {
                waiting.add(offer.f0);
            } else {
                sales.collect(Tuple4.of(known.f1, known.f2, known.f3, offer.f0));
            }
        }

        @Override
        public void processElement2(
                Tuple4<Long, String, String, String> person,
                Context context,
                Collector<Tuple4<String, String, String, Long>> sales)
                throws Exception {
            seller.update(person);
            for (Long auction : waiting.get()) {
                sales.collect(Tuple4.of(person.f1, person.f2, person.f3, auction));
            }
            waiting.clear();
        }
    }
}
