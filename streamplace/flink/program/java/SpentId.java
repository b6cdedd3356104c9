/*
 * Submits a job that can never run, so that its id is used up: its operators ask for a resource that
 * no TaskManager has. Flink accepts an id once, so a request for the same id that is still under way
 * starts nothing any more.
 */
import org.apache.flink.api.common.operators.SlotSharingGroup;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class SpentId {
    private SpentId() {}

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        SlotSharingGroup nowhere =
                SlotSharingGroup.newBuilder("nowhere")
                        .setCpuCores(0.001)
                        .setTaskHeapMemoryMB(1)
                        .setExternalResource("streamplace-nowhere", 1.0)
                        .build();
        env.fromSequence(0, 1)
                .slotSharingGroup(nowhere)
                .sinkTo(new DiscardingSink<>())
                .slotSharingGroup(nowhere);
        env.executeAsync("streamplace: not to be started any more");
    }
}
