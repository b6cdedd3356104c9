/* Nexmark query 5: which auctions got the most bids in the last ten seconds, every two seconds. */
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.CoProcessFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public final class NexmarkQ5 {
    static final Duration WINDOW = Duration.ofSeconds(10), STEP = Duration.ofSeconds(2);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<BidCount> counts =
                Auctions.bids(Auctions.events(env, arguments))
                        .keyBy(bid -> bid.auction)
                        .window(SlidingProcessingTimeWindows.of(WINDOW, STEP))
                        .aggregate(
                                new Application.Count<>(),
                                NexmarkQ5::counted,
                                Types.LONG,
                                Types.POJO(BidCount.class))
                        .name("count-by-auction");
        DataStream<BidCount> greatest =
                counts.windowAll(TumblingProcessingTimeWindows.of(STEP))
                        .reduce(NexmarkQ5::greater)
                        .name("max-count");
        Application.sink(
                counts.connect(greatest).process(new Join()).name("join-max"), "sink");
        env.execute("nexmark-q5");
    }

    static void counted(
            Long auction, TimeWindow window, Iterable<Long> bids, Collector<BidCount> counts) {
        BidCount count = new BidCount();
        count.auction = auction;
        count.bids = bids.iterator().next();
        count.end = window.getEnd();
        counts.collect(count);
    }

    /** The greater count of the later window. */
    static BidCount greater(BidCount left, BidCount right) {
        if (left.end != right.end) {
            return left.end > right.end ? left : right;
        }
        return left.bids >= right.bids ? left : right;
    }

    /** Bids that an auction got in the window that ended then. */
    public static final class BidCount {
        public long auction, bids, end;
    }

    /** Keeps counts until the greatest of their window is known. */
    static final class Join extends CoProcessFunction<BidCount, BidCount, BidCount> {
        private final TreeMap<Long, List<BidCount>> waiting = new TreeMap<>();
        private transient BidCount greatest;

        @Override
        public void processElement1(BidCount count, Context context, Collector<BidCount> hottest) {
            if (greatest == null || count.end > greatest.end) {
                waiting.computeIfAbsent(count.end, end -> new ArrayList<>()).add(count);
            } else if (isGreatest(count)) {
                hottest.collect(count);
            }
        }

        @Override
        public void processElement2(BidCount found, Context context, Collector<BidCount> hottest) {
            greatest = found;
            for (BidCount count : waiting.getOrDefault(found.end, List.of())) {
                if (isGreatest(count)) {
                    hottest.collect(count);
                }
            }
            waiting.headMap(found.end, true).clear();
        }

        private boolean isGreatest(BidCount count) {
            return count.end == greatest.end && count.bids >= greatest.bids;
        }
    }
}
