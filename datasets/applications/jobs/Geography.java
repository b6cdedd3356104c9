/* Where visitors are: what the analyses of logs and of clicks share. */
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

final class Geography {
    static final int NETWORKS = 1 << 18, CITIES = 10_000;
    static final String[] COUNTRIES = Locale.getISOCountries();

    private Geography() {}

    /** One of the numbers 0…n-1, of which the first are frequent. */
    static int skewed(int n, long seed) {
        return (int) (Math.pow(n + 1, Application.fraction(seed)) - 1);
    }

    /** Address of a visitor, the same every time. */
    static String address(long visitor) {
        long bits = Application.scrambled(~visitor);
        return (bits >>> 56) + "." + (bits >> 48 & 255) + "."
                + (bits >> 40 & 255) + "." + (bits >> 32 & 255);
    }

    /** Tells country and city of an address from a table of networks by their first addresses. */
    static final class Locate<T> extends RichMapFunction<T, Tuple2<String, String>> {
        private final KeySelector<T, String> addressOf;
        private transient long[] networks;
        private transient int[] cityOfNetwork;
        private transient List<Tuple2<String, String>> cities;

        Locate(KeySelector<T, String> addressOf) {
            this.addressOf = addressOf;
        }

        @Override
        public void open(OpenContext context) {
            LongStream numbers = LongStream.range(0, NETWORKS);
            networks = numbers.map(i -> i == 0 ? 0 : Application.scrambled(i) >>> 32).toArray();
            Arrays.sort(networks);
            cityOfNetwork = IntStream.range(0, NETWORKS).map(i -> skewed(CITIES, i)).toArray();
            cities = IntStream.range(0, CITIES).mapToObj(Locate::city).toList();
        }

        private static Tuple2<String, String> city(int number) {
            return Tuple2.of(COUNTRIES[skewed(COUNTRIES.length, ~number)], "city " + number);
        }

        @Override
        public Tuple2<String, String> map(T seen) throws Exception {
            long address = 0;
            for (String part : addressOf.getKey(seen).split("\\.")) {
                address = address * 256 + Integer.parseInt(part);
            }
            int found = Arrays.binarySearch(networks, address);
            return cities.get(cityOfNetwork[found < 0 ? -found - 2 : found]);
        }
    }

    /** Counts what comes from every country and from its cities. */
    static final class CountCities
            extends KeyedProcessFunction<
                    String, Tuple2<String, String>, Tuple4<String, Long, String, Long>> {
        private transient ValueState<Long> count;
        private transient MapState<String, Long> countOfCity;

        @Override
        public void open(OpenContext context) {
            RuntimeContext states = getRuntimeContext();
            count = states.getState(new ValueStateDescriptor<>("count", Types.LONG));
            countOfCity =
                    states.getMapState(
                            new MapStateDescriptor<>("cities", Types.STRING, Types.LONG));
        }

        @Override
        public void processElement(
                Tuple2<String, String> place,
                Context context,
                Collector<Tuple4<String, Long, String, Long>> counts)
                throws Exception {
            Long before = count.value(), beforeInCity = countOfCity.get(place.f1);
            long seen = before == null ? 1 : before + 1;
            long seenInCity = beforeInCity == null ? 1 : beforeInCity + 1;
            count.update(seen);
            countOfCity.put(place.f1, seenInCity);
            counts.collect(Tuple4.of(place.f0, seen, place.f1, seenInCity));
        }
    }
}
