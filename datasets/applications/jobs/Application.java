/* What the applications share: sources that hold a rate, sinks, and a count. */
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

final class Application {
    /** The number of the tuple that is repeated. */
    private static final long REPEATED = 7;

    private Application() {}

    /**
     * Tuples made from their numbers 0, 1, 2 …, as many per second as the first argument says. The
     * second one, if there is one, is the share of tuples that repeat one of them, and so its key.
     */
    static <T> DataStream<T> source(
            StreamExecutionEnvironment env,
            String name,
            String[] arguments,
            GeneratorFunction<Long, T> tuple,
            TypeInformation<T> type) {
        double rate = Double.parseDouble(arguments[0]);
        double repeats = arguments.length > 1 ? Double.parseDouble(arguments[1]) : 0;
        GeneratorFunction<Long, T> skewed =
                number -> tuple.map(fraction(~number) < repeats ? REPEATED : number);
        DataGeneratorSource<T> tuples =
                new DataGeneratorSource<>(
                        repeats > 0 ? skewed : tuple, Long.MAX_VALUE, parallelism -> new Bursts<>(rate / parallelism), type);
        return env.fromSource(tuples, WatermarkStrategy.noWatermarks(), name);
    }

    /** Takes in a stream and forgets it. */
    static <T> void sink(DataStream<T> stream, String name) {
        stream.sinkTo(new DiscardingSink<>()).name(name);
    }

    /** A number that looks random, the same for the same seed; as SplitMix64 makes them. */
    static long scrambled(long seed) {
        long mixed = seed + 0x9e3779b97f4a7c15L;
        mixed = (mixed ^ (mixed >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        return mixed ^ (mixed >>> 31);
    }

    /** A number in 0…1 that looks random, the same for the same seed. */
    static double fraction(long seed) {
        return (scrambled(seed) >>> 11) * 0x1.0p-53;
    }

    /** Counts what a window holds. */
    static final class Count<T> implements AggregateFunction<T, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(T tuple, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long left, Long right) {
            return left + right;
        }
    }

    /**
     * Lets tuples through by the hundredth of a second. Flink's own limiter asks another thread
     * about every tuple, which costs more than most sources do.
     */
    private static final class Bursts<S extends SourceSplit> implements RateLimiter<S> {
        private static final Executor LATER =
                CompletableFuture.delayedExecutor(10, TimeUnit.MILLISECONDS);
        private final double perNanosecond;
        private final long start = System.nanoTime();
        private long passed;

        Bursts(double perSecond) {
            perNanosecond = perSecond * 1e-9;
        }

        @Override
        public CompletionStage<Void> acquire(int tuples) {
            passed += tuples;
            boolean due = passed <= (System.nanoTime() - start) * perNanosecond;
            return due
                    ? CompletableFuture.completedFuture(null)
                    : CompletableFuture.runAsync(() -> {}, LATER);
        }
    }
}
