import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.JobListener;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public final class Listening {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
        env.registerJobListener(new JobListener() {
            public void onJobSubmitted(JobClient client, Throwable failure) {
                System.out.println("told of the job");
            }

            public void onJobExecuted(JobExecutionResult result, Throwable failure) {}
        });
        env.fromSequence(1, 2).name("in").filter(number -> true).name("out");
        env.executeAsync("job");
        System.exit(0);
    }
}
