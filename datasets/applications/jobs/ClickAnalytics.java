/*
 * Watches the clicks on a web site: the source parses them from JSON; first visits of a page are
 * told from repeated ones and both counted, and the visitors are counted by country and city.
 */
import java.util.UUID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class ClickAnalytics {
    static final int VISITORS = 2_000, PAGES = 50;
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Click> clicks =
                Application.source(
                        env,
                        "source",
                        arguments,
                        number -> JSON.readValue(json(number), Click.class),
                        Types.POJO(Click.class));
        Application.sink(
                clicks.keyBy(
                                click -> Tuple2.of(click.url, click.clientKey),
                                Types.TUPLE(Types.STRING, Types.STRING))
                        .process(new Recognize())
                        .name("repeat-visits")
                        .map(new CountVisits())
                        .name("visit-stats"),
                "visit-sink");
        Application.sink(
                clicks.rebalance()
                        .map(new Geography.Locate<>(click -> click.ip))
                        .returns(Types.TUPLE(Types.STRING, Types.STRING))
                        .name("geography")
                        .keyBy(place -> place.f0)
                        .process(new Geography.CountCities())
                        .name("geo-stats"),
                "location-sink");
        env.execute("click-analytics");
    }

    /** A click as a web page reports it; few visitors and pages are frequent. */
    static String json(long number) {
        int visitor = Geography.skewed(VISITORS, 2 * number);
        int page = Geography.skewed(PAGES, 2 * number + 1);
        UUID key = new UUID(Application.scrambled(visitor), visitor);
        return "{\"ip\": \"" + Geography.address(visitor)
                + "\", \"url\": \"http://www.example.com/shop/" + page
                + ".html\", \"clientKey\": \"" + key + "\"}";
    }

    /** A click as it was reported. */
    public static final class Click {
        public String ip, url, clientKey;
    }

    /** Tells whether a visitor sees a page for the first time. */
    static final class Recognize
            extends KeyedProcessFunction<
                    Tuple2<String, String>, Click, Tuple3<String, String, Boolean>> {
        private transient ValueState<Boolean> visited;

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Boolean> seen = new ValueStateDescriptor<>("seen", Types.BOOLEAN);
            visited = getRuntimeContext().getState(seen);
        }

        @Override
        public void processElement(
                Click click, Context context, Collector<Tuple3<String, String, Boolean>> visits)
                throws Exception {
            boolean first = visited.value() == null;
            if (first) {
                visited.update(true);
            }
            visits.collect(Tuple3.of(click.clientKey, click.url, first));
        }
    }

    /** Counts all visits and the first ones among them. */
    static final class CountVisits
            implements MapFunction<Tuple3<String, String, Boolean>, Tuple2<Long, Long>> {
        private long visits, firstVisits;

        @Override
        public Tuple2<Long, Long> map(Tuple3<String, String, Boolean> visit) {
            visits++;
            firstVisits += visit.f2 ? 1 : 0;
            return Tuple2.of(visits, firstVisits);
        }
    }
}
