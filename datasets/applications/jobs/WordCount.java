/* Counts the words of sentences. */
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public final class WordCount {
    static final int WORDS = 10, VOCABULARY = 20_000;

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<String> words =
                Application.source(env, "source", arguments, WordCount::sentence, Types.STRING)
                        .flatMap(WordCount::split)
                        .returns(Types.STRING)
                        .name("splitter");
        Application.sink(words.keyBy(word -> word).process(new Count()).name("counter"), "sink");
        env.execute("word-count");
    }

    /** Ten words of a text in which few words are frequent. */
    static String sentence(long number) {
        StringBuilder sentence = new StringBuilder();
        for (int i = 0; i < WORDS; i++) {
            double u = Application.fraction(number * WORDS + i);
            long word = (long) (Math.pow(VOCABULARY, u) - 1);
            sentence.append(i > 0 ? " " : "").append(Long.toString(word * 7919 + 1296, 36));
        }
        return sentence.toString();
    }

    static void split(String sentence, Collector<String> words) {
        for (String word : sentence.split(" ")) {
            words.collect(word);
        }
    }

    static final class Count extends KeyedProcessFunction<String, String, Tuple2<String, Long>> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(
                String word, Context context, Collector<Tuple2<String, Long>> counts)
                throws Exception {
            long seen = count.value() == null ? 1 : count.value() + 1;
            count.update(seen);
            counts.collect(Tuple2.of(word, seen));
        }
    }
}
