import org.apache.flink.api.common.operators.SlotSharingGroup;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public final class Requesting {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.fromSequence(1, 2).name("in").filter(number -> true).name("out").slotSharingGroup(
            SlotSharingGroup.newBuilder("vision").setCpuCores(1).setTaskHeapMemoryMB(9)
                .setExternalResource("gpu", 1.0).build());
        Placed.pin(env.getStreamGraph());
    }
}
