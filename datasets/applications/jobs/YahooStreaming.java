/* Counts the views of advertisements by campaign, every ten seconds. */
import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectReader;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.PropertyNamingStrategies;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public final class YahooStreaming {
    static final Duration WINDOW = Duration.ofSeconds(10);
    static final int CAMPAIGNS = 100, ADS_PER_CAMPAIGN = 10;
    static final long START = 1_700_000_000_000L;
    static final String[] ADS = ids('a', CAMPAIGNS * ADS_PER_CAMPAIGN);
    static final String[] USERS = ids('u', 100), PAGES = ids('p', 100);
    static final String[] AD_TYPES = {"banner", "modal", "sponsored-search", "mail", "mobile"};
    static final String[] EVENT_TYPES = {"view", "click", "purchase"};

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Tuple2<String, Long>> views =
                Application.source(env, "kafka", arguments, YahooStreaming::event, Types.STRING)
                        .map(new Deserialize())
                        .name("deserialize")
                        .filter(event -> event.eventType.equals("view"))
                        .name("filter-views")
                        .map(event -> Tuple2.of(event.adId, event.eventTime))
                        .returns(Types.TUPLE(Types.STRING, Types.LONG))
                        .name("project");
        DataStream<Tuple3<String, Long, Long>> counts =
                views.flatMap(new JoinCampaign())
                        .name("join-campaign")
                        .keyBy(view -> view.f0)
                        .window(TumblingProcessingTimeWindows.of(WINDOW))
                        .aggregate(
                                new Application.Count<>(),
                                YahooStreaming::counted,
                                Types.LONG,
                                Types.TUPLE(Types.STRING, Types.LONG, Types.LONG))
                        .name("count-window");
        Application.sink(counts, "redis-sink");
        env.execute("yahoo-streaming");
    }

    static String event(long number) {
        long seed = number * 5;
        return "{\"user_id\": \"" + any(USERS, seed)
                + "\", \"page_id\": \"" + any(PAGES, seed + 1)
                + "\", \"ad_id\": \"" + any(ADS, seed + 2)
                + "\", \"ad_type\": \"" + any(AD_TYPES, seed + 3)
                + "\", \"event_type\": \"" + any(EVENT_TYPES, seed + 4)
                + "\", \"event_time\": \"" + (START + number)
                + "\", \"ip_address\": \"1.2.3.4\"}";
    }

    static String any(String[] choices, long seed) {
        return choices[Math.floorMod(Application.scrambled(seed), choices.length)];
    }

    static String[] ids(char kind, int count) {
        String[] ids = new String[count];
        for (int i = 0; i < count; i++) {
            ids[i] = UUID.nameUUIDFromBytes((kind + " " + i).getBytes()).toString();
        }
        return ids;
    }

    /** Campaign, end of the window, views. */
    static void counted(
            String campaign,
            TimeWindow window,
            Iterable<Long> views,
            Collector<Tuple3<String, Long, Long>> counts) {
        counts.collect(Tuple3.of(campaign, window.getEnd(), views.iterator().next()));
    }

    public static final class Event {
        public String userId, pageId, adId, adType, eventType, ipAddress;
        public long eventTime;
    }

    static final class Deserialize extends RichMapFunction<String, Event> {
        private transient ObjectReader reader;

        @Override
        public void open(OpenContext context) {
            reader =
                    new ObjectMapper()
                            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
                            .readerFor(Event.class);
        }

        @Override
        public Event map(String text) throws IOException {
            return reader.readValue(text);
        }
    }

    /** Puts the campaign before the advertisement and the time; unknown advertisements go. */
    static final class JoinCampaign
            extends RichFlatMapFunction<Tuple2<String, Long>, Tuple3<String, String, Long>> {
        private transient Map<String, String> campaigns;

        @Override
        public void open(OpenContext context) {
            String[] known = ids('c', CAMPAIGNS);
            campaigns = new HashMap<>();
            for (int i = 0; i < ADS.length; i++) {
                campaigns.put(ADS[i], known[i / ADS_PER_CAMPAIGN]);
            }
        }

        @Override
        public void flatMap(
                Tuple2<String, Long> view, Collector<Tuple3<String, String, Long>> views) {
            String campaign = campaigns.get(view.f0);
            if (campaign != null) {
                views.collect(Tuple3.of(campaign, view.f0, view.f1));
            }
        }
    }
}
