/* Tells every number once, by a sink with transactions; no operator has a uid. While there is a file
 * "broken" in the folder for commands, the job fails whenever it runs; "broken once" fails it once.
 * Arguments: numbers per second, a folder for the numbers, a folder for commands. */
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public final class OnceJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        RateLimiterStrategy rate =
                RateLimiterStrategy.perSecond(Double.parseDouble(arguments[0]));
        String commands = arguments[2];
        env.fromSource(
                        new DataGeneratorSource<>(n -> n, Long.MAX_VALUE, rate, Types.LONG),
                        WatermarkStrategy.noWatermarks(),
                        "numbers")
                .setParallelism(1)
                .rebalance()
                .map(number -> {
                    fail(commands);
                    return String.valueOf(number);
                })
                .returns(Types.STRING)
                .setParallelism(2)
                .name("work")
                .sinkTo(EventsJob.files(arguments[1]))
                .setParallelism(1)
                .name("out");
        env.execute("once");
    }

    private static void fail(String commands) throws IOException {
        if (Files.exists(Path.of(commands, "broken"))) {
            throw new IOException("broken");
        }
        if (Files.deleteIfExists(Path.of(commands, "broken once"))) {
            throw new IOException("broken once");
        }
    }
}
