/*
 * Watches the log of a web shop: lines are parsed; what is known of the client is added to each
 * request, which makes it big; requests that look like an attack are told, which is hard work; and
 * requests are counted by page. The argument is the number of lines per second.
 */
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class LogJob {
    static final int HISTORY = 400, CLIENTS = 500, COUNTS_PER_REPORT = 100;
    static final double ALIKE = 0.9;
    static final String[] PAGES = {"/", "/search", "/basket", "/pay", "/login"};
    static final Pattern LINE = Pattern.compile("(\\S+) \\[(\\d+)] \"GET (\\S+)\" (\\d+) (\\d+)");
    /** Pages that known attackers visited, in order. */
    static final List<int[]> ATTACKERS =
            IntStream.range(0, 8).mapToObj(i -> pages(history("client" + 61 * i))).toList();

    public static void main(String[] arguments) throws Exception {
        double rate = Double.parseDouble(arguments[0]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataGeneratorSource<String> log =
                new DataGeneratorSource<>(
                        LogJob::line, Long.MAX_VALUE, RateLimiterStrategy.perSecond(rate), Types.STRING);
        DataStream<Request> requests =
                env.fromSource(log, WatermarkStrategy.noWatermarks(), "lines")
                        .map(LogJob::parse)
                        .name("parse");
        requests.map(LogJob::enrich)
                .name("enrich")
                .rebalance()
                .filter(LogJob::isAttack)
                .name("detect")
                .setParallelism(4)
                .map(request -> request.client + " " + request.page)
                .returns(Types.STRING)
                .name("describe")
                .print("alert")
                .name("alerts");
        requests.keyBy(request -> request.page)
                .process(new Count())
                .name("count")
                .print("count")
                .name("report");
        env.execute("web shop log");
    }

    /** Subtasks of the source count from far apart, where products overflow and may be negative. */
    static String line(long number) {
        long client = Math.floorMod(number * 7919, CLIENTS), millis = 3 + Math.floorMod(number * 31, 200);
        String page = PAGES[Math.floorMod(number * number, PAGES.length)];
        int status = number % 50 == 0 ? 401 : 200;
        return "client" + client + " [" + number + "] \"GET " + page + "\" " + status + " " + millis;
    }

    static Request parse(String line) {
        Matcher found = LINE.matcher(line);
        if (!found.matches()) {
            throw new IllegalArgumentException("not a line of the log: " + line);
        }
        Request request = new Request();
        request.client = found.group(1);
        request.page = found.group(3);
        request.status = Integer.parseInt(found.group(4));
        request.millis = Integer.parseInt(found.group(5));
        return request;
    }

    static Request enrich(Request request) {
        request.history = history(request.client);
        return request;
    }

    /** Last requests of a client, as a store of sessions would return them. */
    static String history(String client) {
        StringBuilder history = new StringBuilder();
        long seen = client.hashCode();
        for (int i = 0; i < HISTORY; i++) {
            seen = seen * 6364136223846793005L + 1442695040888963407L;
            String page = PAGES[(int) Math.floorMod(seen >> 33, (long) PAGES.length)];
            history.append(page).append(' ').append(seen >>> 56).append(" ms, 200 OK\n");
        }
        return history.toString();
    }

    /** Whether a client went through the shop much like an attacker did. */
    static boolean isAttack(Request request) {
        int[] visited = pages(request.history);
        return ATTACKERS.stream().anyMatch(known -> common(visited, known) > ALIKE * known.length);
    }

    static int[] pages(String history) {
        return history.lines().mapToInt(line -> line.substring(0, line.indexOf(' ')).hashCode()).toArray();
    }

    /** Length of the longest common subsequence. */
    static int common(int[] left, int[] right) {
        int[] row = new int[right.length + 1];
        for (int visited : left) {
            for (int i = 1, diagonal = 0; i < row.length; i++) {
                int above = row[i];
                row[i] = visited == right[i - 1] ? diagonal + 1 : Math.max(above, row[i - 1]);
                diagonal = above;
            }
        }
        return row[right.length];
    }

    /** A request as it is known so far. */
    public static final class Request {
        public String client, page, history = "";
        public int status, millis;
    }

    /** Counts the requests of every page. */
    static final class Count extends KeyedProcessFunction<String, Request, String> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Request request, Context context, Collector<String> out)
                throws Exception {
            long seen = (count.value() == null ? 0 : count.value()) + 1;
            count.update(seen);
            if (seen % COUNTS_PER_REPORT == 0) {
                out.collect(request.page + " " + seen);
            }
        }
    }
}
