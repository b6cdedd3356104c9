/*
 * Readings of machines, each completed by a store that answers after some milliseconds and now and
 * then not at all; alarms are told, and machines that are silent.
 * Arguments: offered readings per second; share of readings of one machine (0).
 */
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;
import org.apache.flink.util.Collector;

public final class Alarms {
    static final int MACHINES = 2_000, CAPACITY = 300;
    static final long ANSWER_MS = 4, TIMEOUT_MS = 200, SILENCE_MS = 10_000;
    static final double UNANSWERED = 0.001, UNKNOWN_LIMIT = 90;

    public static void main(String[] arguments) throws Exception {
        double skew = arguments.length > 1 ? Double.parseDouble(arguments[1]) : 0;
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Reading> readings =
                Application.source(
                                env,
                                "readings",
                                new String[] {arguments[0]},
                                number -> json(number, skew),
                                Types.STRING)
                        .rebalance()
                        .map(new Parse())
                        .returns(Types.POJO(Reading.class))
                        .name("parse");
        DataStream<Reading> completed =
                AsyncDataStream.unorderedWait(
                                readings, new AskStore(), TIMEOUT_MS, TimeUnit.MILLISECONDS, CAPACITY)
                        .returns(Types.POJO(Reading.class))
                        .name("ask store");
        Application.sink(
                completed.keyBy(reading -> reading.machine).process(new Judge()).name("judge"),
                "alarms");
        env.execute("alarms");
    }

    static String json(long number, double skew) {
        boolean isSkewed = Application.fraction(~number) < skew;
        int machine = isSkewed ? 0 : Math.floorMod(Application.scrambled(number), MACHINES);
        return "{\"machine\": " + machine + ", \"number\": " + number + ", \"celsius\": "
                + 100 * Application.fraction(number) + ", \"site\": \"hall " + machine % 17 + "\"}";
    }

    /** What a machine measured, and what the store knows of it. */
    public static final class Reading {
        public int machine;
        public long number;
        public double celsius, limit;
        public String site;
    }

    static final class Parse implements MapFunction<String, Reading> {
        private static final ObjectMapper JSON = new ObjectMapper();

        @Override
        public Reading map(String text) throws Exception {
            JsonNode node = JSON.readTree(text);
            Reading reading = new Reading();
            reading.machine = node.get("machine").asInt();
            reading.number = node.get("number").asLong();
            reading.celsius = node.get("celsius").asDouble();
            reading.site = node.get("site").asText();
            return reading;
        }
    }

    /** Asks for the limit of a machine; what is not answered in time gets a usual one. */
    static final class AskStore extends RichAsyncFunction<Reading, Reading> {
        private transient ScheduledExecutorService store;

        @Override
        public void open(OpenContext context) {
            store = Executors.newSingleThreadScheduledExecutor();
        }

        @Override
        public void asyncInvoke(Reading reading, ResultFuture<Reading> answer) {
            if (Application.fraction(reading.number) >= UNANSWERED) {
                store.schedule(
                        () -> complete(reading, 80 + reading.machine % 20, answer),
                        ANSWER_MS,
                        TimeUnit.MILLISECONDS);
            }
        }

        @Override
        public void timeout(Reading reading, ResultFuture<Reading> answer) {
            complete(reading, UNKNOWN_LIMIT, answer);
        }

        @Override
        public void close() {
            if (store != null) {
                store.shutdownNow();
            }
        }

        private static void complete(Reading reading, double limit, ResultFuture<Reading> answer) {
            reading.limit = limit;
            answer.complete(List.of(reading));
        }
    }

    /** Tells readings above the limit, and machines from which nothing comes for some time. */
    static final class Judge extends KeyedProcessFunction<Integer, Reading, String> {
        private transient ValueState<Long> wakes, seen;

        @Override
        public void open(OpenContext context) {
            wakes = getRuntimeContext().getState(new ValueStateDescriptor<>("wakes", Types.LONG));
            seen = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Types.LONG));
        }

        @Override
        public void processElement(Reading reading, Context context, Collector<String> alarms)
                throws Exception {
            long now = context.timerService().currentProcessingTime();
            seen.update(now);
            if (wakes.value() == null) {
                wakes.update(now + SILENCE_MS);
                context.timerService().registerProcessingTimeTimer(now + SILENCE_MS);
            }
            if (reading.celsius > reading.limit) {
                alarms.collect(reading.site + ": " + reading.machine + " has " + reading.celsius);
            }
        }

        @Override
        public void onTimer(long now, OnTimerContext context, Collector<String> alarms)
                throws Exception {
            wakes.clear();
            if (now - seen.value() >= SILENCE_MS) {
                alarms.collect(context.getCurrentKey() + " is silent");
            }
        }
    }
}
