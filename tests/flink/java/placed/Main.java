import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;

public final class Main {
    public static void main(String[] names) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
        DataStream<Long> stream = env.fromSequence(1, 2).name(decoded(names[0]));
        for (int i = 1; i < names.length; i++) {
            stream = stream.filter(number -> true).name(decoded(names[i]));
        }
        StreamGraph graph = Placed.pin(env.getStreamGraph());
        graph.getStreamNodes().forEach(node -> System.out.println(
            encoded(node.getSlotSharingGroup()) + " "
                + graph.getSlotSharingGroupResource(node.getSlotSharingGroup()).isPresent()));
    }

    private static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
