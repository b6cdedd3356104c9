/* A job of a source, an operator that works and a sink, with one cause why it is slow at most.
 * Arguments: parallelism, tuples per second, then NAME=NUMBER: rounds of work, milliseconds of
 * sleep, bytes of payload and of garbage per tuple, percent of the tuples with one key (skew), or
 * of one split (split). */
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class HotJob {
    static final TypeInformation<byte[]> BYTES = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
    static final AtomicInteger SPLITS = new AtomicInteger();
    static byte[][] held;

    public static void main(String[] arguments) throws Exception {
        int parallelism = Integer.parseInt(arguments[0]);
        double rate = Double.parseDouble(arguments[1]);
        Map<String, Integer> given = new HashMap<>();
        for (int i = 2; i < arguments.length; i++) {
            String[] words = arguments[i].split("=");
            given.put(words[0], Integer.valueOf(words[1]));
        }
        int rounds = given.getOrDefault("rounds", 0), sleep = given.getOrDefault("sleep", 0);
        int size = 8 + given.getOrDefault("payload", 0), garbage = given.getOrDefault("garbage", 0);
        int skew = given.getOrDefault("skew", 0), split = given.getOrDefault("split", 0);
        RateLimiterStrategy limits = // raw: it has no parameters in Flink 1.20
                split == 0 ? RateLimiterStrategy.perSecond(rate) : number -> part(rate, number, split);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.disableOperatorChaining();
        DataStream<byte[]> numbers =
                env.fromSource(
                                new DataGeneratorSource<>(
                                        n -> ByteBuffer.allocate(size).putLong(n).array(),
                                        Long.MAX_VALUE,
                                        limits,
                                        BYTES),
                                WatermarkStrategy.noWatermarks(),
                                "numbers")
                        .setParallelism(parallelism);
        DataStream<byte[]> dealt = split > 0 ? numbers : numbers.rebalance();
        if (skew > 0) {
            dealt = numbers.keyBy(b -> key(ByteBuffer.wrap(b).getLong(), skew), Types.LONG);
        }
        dealt.map(b -> worked(b, rounds, sleep, garbage))
                .returns(BYTES)
                .setParallelism(parallelism)
                .name("work")
                .sinkTo(new DiscardingSink<>())
                .setParallelism(parallelism)
                .name("out");
        env.execute("hot");
    }

    static org.apache.flink.api.connector.source.util.ratelimit.RateLimiter part(
            double rate, int number, int split) {
        double part = SPLITS.getAndIncrement() == 0 ? split : (100.0 - split) / (number - 1);
        return RateLimiterStrategy.perSecond(rate * part / 100).createRateLimiter(1);
    }

    static long key(long number, int skew) {
        return number % 100 < skew ? 0 : number % 1009;
    }

    static byte[] worked(byte[] tuple, int rounds, int sleep, int garbage) throws Exception {
        long x = 88172645463325252L;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        if (sleep > 0) {
            Thread.sleep(sleep);
        }
        if (garbage > 0) {
            hold(garbage, x);
        }
        tuple[0] = (byte) x;
        return tuple;
    }

    /** Replaces some of many small arrays that live long. */
    static synchronized void hold(int garbage, long x) {
        if (held == null) {
            held = new byte[1_200_000][];
        }
        for (int i = 0; i < garbage / 100; i++) {
            held[(int) Math.floorMod(x + System.nanoTime() * 31 + i * 7919L, held.length)] = new byte[84];
        }
    }
}
