/* Nexmark query 7: the bids with the highest price, every ten seconds. */
import java.time.Duration;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public final class NexmarkQ7 {
    static final Duration WINDOW = Duration.ofSeconds(10);
    static final MapStateDescriptor<?, ?>[] NO_BROADCAST_STATE = {};

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Auctions.Bid> bids = Auctions.bids(Auctions.events(env, arguments));
        DataStream<Tuple2<Long, Long>> prices =
                bids.windowAll(TumblingProcessingTimeWindows.of(WINDOW))
                        .reduce(
                                NexmarkQ7::higher,
                                NexmarkQ7::price,
                                Types.TUPLE(Types.LONG, Types.LONG))
                        .name("max-price");
        Application.sink(
                bids.keyBy(bid -> bid.auction)
                        .connect(prices.broadcast(NO_BROADCAST_STATE))
                        .process(new Join())
                        .name("join-price"),
                "sink");
        env.execute("nexmark-q7");
    }

    static Auctions.Bid higher(Auctions.Bid left, Auctions.Bid right) {
        return left.price >= right.price ? left : right;
    }

    /** Highest price, and when its window ended. */
    static void price(
            TimeWindow window,
            Iterable<Auctions.Bid> highest,
            Collector<Tuple2<Long, Long>> prices) {
        prices.collect(Tuple2.of(highest.iterator().next().price, window.getEnd()));
    }

    /** Keeps the first highest bid of each auction until the highest price of all is known. */
    static final class Join
            extends KeyedBroadcastProcessFunction<
                    Long, Auctions.Bid, Tuple2<Long, Long>, Auctions.Bid> {
        private final MapStateDescriptor<Long, Auctions.Bid> highestByEnd =
                new MapStateDescriptor<>("highest", Types.LONG, Types.POJO(Auctions.Bid.class));
        private transient MapState<Long, Auctions.Bid> highest;

        @Override
        public void open(OpenContext context) {
            highest = getRuntimeContext().getMapState(highestByEnd);
        }

        @Override
        public void processElement(
                Auctions.Bid bid, ReadOnlyContext context, Collector<Auctions.Bid> winners)
                throws Exception {
            long size = WINDOW.toMillis();
            long end = (context.currentProcessingTime() / size + 1) * size;
            Auctions.Bid known = highest.get(end);
            if (known == null || bid.price > known.price) {
                highest.put(end, bid);
            }
        }

        @Override
        public void processBroadcastElement(
                Tuple2<Long, Long> price, Context context, Collector<Auctions.Bid> winners)
                throws Exception {
            context.applyToKeyedState(
                    highestByEnd,
                    (auction, bids) -> {
                        Auctions.Bid bid = bids.get(price.f1);
                        if (bid != null && bid.price == price.f0) {
                            winners.collect(bid);
                        }
                        bids.remove(price.f1);
                    });
        }
    }
}
