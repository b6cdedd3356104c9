/* Orders and payments of two topics, joined by their number, exactly once; payments of large orders
 * also into another topic.
 * Arguments: address of the brokers; records per second that a subtask of either reads at most, by
 * default any. */
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

public final class JoinJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        double most = arguments.length > 1 ? Double.parseDouble(arguments[1]) : 1e9;
        SingleOutputStreamOperator<String> paid =
                read(env, arguments[0], "orders", most)
                        .keyBy(one -> one.f2)
                        .connect(read(env, arguments[0], "payments", most).keyBy(one -> one.f2))
                        .process(new Match())
                        .name("match");
        paid.sinkTo(WindowsJob.sink(arguments[0], "paid", DeliveryGuarantee.EXACTLY_ONCE))
                .name("paid");
        paid.filter(text -> text.contains(" 9"))
                .name("large")
                .sinkTo(WindowsJob.sink(arguments[0], "large", DeliveryGuarantee.AT_LEAST_ONCE))
                .name("large payments");
        env.execute("payments of orders");
    }

    static DataStream<Tuple3<String, Long, Long>> read(
            StreamExecutionEnvironment env, String broker, String topic, double most) {
        return env.fromSource(
                        WindowsJob.source(broker, topic, 1), WatermarkStrategy.noWatermarks(), topic)
                .map(new WindowsJob.Parse(most))
                .name("parse " + topic)
                .filter(one -> !one.f0.equals("end"))
                .name(topic + " only");
    }

    /** An order waits for its payment, or the other way round. */
    static final class Match
            extends KeyedCoProcessFunction<
                    Long, Tuple3<String, Long, Long>, Tuple3<String, Long, Long>, String> {
        private transient ValueState<Boolean> waits;

        @Override
        public void processElement1(
                Tuple3<String, Long, Long> order, Context context, Collector<String> out)
                throws Exception {
            meet(order, out);
        }

        @Override
        public void processElement2(
                Tuple3<String, Long, Long> payment, Context context, Collector<String> out)
                throws Exception {
            meet(payment, out);
        }

        private void meet(Tuple3<String, Long, Long> one, Collector<String> out) throws Exception {
            if (waits == null) {
                waits =
                        getRuntimeContext()
                                .getState(new ValueStateDescriptor<>("waits", Types.BOOLEAN));
            }
            if (waits.value() == null) {
                waits.update(true);
            } else {
                waits.clear();
                out.collect(one.f0 + " " + one.f1 + " " + one.f2);
            }
        }
    }
}
