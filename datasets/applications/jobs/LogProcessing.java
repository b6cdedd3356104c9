/*
 * Watches the log of a web server: the source parses its lines; requests are counted by minute and
 * by status, and their addresses are looked up to count them by country and city.
 */
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class LogProcessing {
    static final int VISITORS = 50_000, PAGES = 5_000, LINES_PER_SECOND = 1_000;
    static final Pattern LINE =
            Pattern.compile(
                    "(\\S+) \\S+ \\S+ \\[([^\\]]+)] \"(\\S+) (\\S+) \\S+\" (\\d{3}) (\\d+|-)");
    static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("dd/MMM/yyyy:HH:mm:ss Z", Locale.ENGLISH);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Request> requests =
                Application.source(
                        env,
                        "source",
                        arguments,
                        number -> parse(line(number)),
                        Types.POJO(Request.class));
        StateTtlConfig hour = StateTtlConfig.newBuilder(Duration.ofHours(1)).build();
        Application.sink(
                requests.keyBy(request -> request.time / 60)
                        .process(new Count(hour))
                        .name("volume-counter"),
                "volume-sink");
        Application.sink(
                requests.keyBy(request -> (long) request.status)
                        .process(new Count(StateTtlConfig.DISABLED))
                        .name("status-counter"),
                "status-sink");
        Application.sink(
                requests.rebalance()
                        .map(new Geography.Locate<>(request -> request.address))
                        .returns(Types.TUPLE(Types.STRING, Types.STRING))
                        .name("geo-finder")
                        .keyBy(place -> place.f0)
                        .process(new Geography.CountCities())
                        .name("geo-stats"),
                "geo-sink");
        env.execute("log-processing");
    }

    /** A line in the Common Log Format; few visitors and pages are frequent. */
    static String line(long number) {
        int visitor = Geography.skewed(VISITORS, 4 * number);
        int page = Geography.skewed(PAGES, 4 * number + 1);
        int status = status(Application.fraction(4 * number + 2));
        long bytes = (long) (200 * Math.exp(6 * Application.fraction(4 * number + 3)));
        return Geography.address(visitor) + " - - [" + time(number / LINES_PER_SECOND)
                + "] \"GET /articles/" + page + ".html HTTP/1.1\" " + status + " " + (status == 304 ? "-" : bytes);
    }

    static int status(double share) {
        return share < 0.88 ? 200 : share < 0.95 ? 304 : share < 0.98 ? 404 : 302;
    }

    static String time(long second) {
        return twoDigits(1 + second / 86_400 % 31) + "/May/2024:" + twoDigits(second / 3_600 % 24)
                + ":" + twoDigits(second / 60 % 60) + ":" + twoDigits(second % 60) + " +0000";
    }

    static String twoDigits(long number) {
        return (number < 10 ? "0" : "") + number;
    }

    static Request parse(String line) {
        Matcher found = LINE.matcher(line);
        if (!found.matches()) {
            throw new IllegalArgumentException("not a line of the log: " + line);
        }
        Request request = new Request();
        request.address = found.group(1);
        request.time = OffsetDateTime.parse(found.group(2), TIME).toEpochSecond();
        request.method = found.group(3);
        request.page = found.group(4);
        request.status = Integer.parseInt(found.group(5));
        request.bytes = found.group(6).equals("-") ? 0 : Long.parseLong(found.group(6));
        return request;
    }

    /** A request as the log tells it; the time is in seconds since 1970. */
    public static final class Request {
        public String address, method, page;
        public long time, bytes;
        public int status;
    }

    /** Counts the requests of every key. */
    static final class Count extends KeyedProcessFunction<Long, Request, Tuple2<Long, Long>> {
        private final StateTtlConfig kept;
        private transient ValueState<Long> count;

        Count(StateTtlConfig kept) {
            this.kept = kept;
        }

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Long> counted = new ValueStateDescriptor<>("count", Types.LONG);
            counted.enableTimeToLive(kept);
            count = getRuntimeContext().getState(counted);
        }

        @Override
        public void processElement(
                Request request, Context context, Collector<Tuple2<Long, Long>> counts)
                throws Exception {
            Long before = count.value();
            long seen = before == null ? 1 : before + 1;
            count.update(seen);
            counts.collect(Tuple2.of(context.getCurrentKey(), seen));
        }
    }
}
