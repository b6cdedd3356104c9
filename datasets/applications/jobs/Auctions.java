/* What happens at an auction site, for the Nexmark queries: people come, sell and bid. */
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

public final class Auctions {
    /** Of so many events, so many are persons and auctions; the others are bids. */
    static final int ROUND = 50, PERSONS = 1, AUCTIONS = 3;
    /** Bytes of an event as Flink writes it. */
    static final int PERSON_BYTES = 200, AUCTION_BYTES = 500, BID_BYTES = 100;
    /** Bytes that Flink adds to an event and to each text in it, and bytes of a number. */
    static final int FRAME = 5, TEXT = 2, NUMBER = 9;
    /** Who came last sells and bids; after so many persons the first one comes again. */
    static final int ACTIVE_PERSONS = 1000, PEOPLE = 200_000;
    /** Auctions that take bids; one auction or person of so many is a favourite for a while. */
    static final int OPEN_AUCTIONS = 100, FAVOURITE = 100;
    static final double BIDS_ON_FAVOURITE = 0.5, ACTS_OF_FAVOURITE = 0.75;
    static final long FIRST_CATEGORY = 10, CATEGORIES = 5;
    static final long START = 1_700_000_000_000L, DAY = 86_400_000L;
    static final String[] FIRST_NAMES = {"Ann", "Boris", "Clara", "David", "Elena", "Farid"};
    static final String[] LAST_NAMES = {"Abbot", "Baker", "Castillo", "Dunn", "Eriksen", "Fischer"};
    static final String[] STATES = {"AZ", "CA", "ID", "OR", "WA", "WY"};
    static final String[] CITIES = {"Phoenix", "Fresno", "Boise", "Salem", "Seattle", "Cheyenne"};
    static final String[] CHANNELS = {"search", "mail", "news", "friends"};

    private Auctions() {}

    static DataStream<Event> events(StreamExecutionEnvironment env, String[] arguments) {
        return Application.source(
                env, "events", arguments, Auctions::event, Types.POJO(Event.class));
    }

    static DataStream<Person> persons(DataStream<Event> events) {
        return parts(events, "persons", Person.class, event -> event.person);
    }

    static DataStream<Auction> auctions(DataStream<Event> events) {
        return parts(events, "auctions", Auction.class, event -> event.auction);
    }

    static DataStream<Bid> bids(DataStream<Event> events) {
        return parts(events, "bids", Bid.class, event -> event.bid);
    }

    private static <T> DataStream<T> parts(
            DataStream<Event> events, String name, Class<T> type, MapFunction<Event, T> part) {
        return events.flatMap(
                        (Event event, Collector<T> parts) -> {
                            T found = part.map(event);
                            if (found != null) {
                                parts.collect(found);
                            }
                        })
                .returns(Types.POJO(type))
                .name(name);
    }

    static Event event(long number) {
        long round = number / ROUND;
        int place = (int) (number % ROUND);
        Event event = new Event();
        if (place < PERSONS) {
            event.person = person(round % PEOPLE, START + number);
        } else if (place < PERSONS + AUCTIONS) {
            event.auction = auction(number, round * AUCTIONS + place - PERSONS, round);
        } else {
            event.bid = bid(number, (round + 1) * AUCTIONS - 1, round);
        }
        return event;
    }

    /** Somebody, the same whenever they come. */
    static Person person(long id, long time) {
        long seed = -8 * (id + 1);
        Person person = new Person();
        person.id = id;
        person.time = time;
        String first = FIRST_NAMES[below(FIRST_NAMES.length, seed)];
        String last = LAST_NAMES[below(LAST_NAMES.length, seed + 1)];
        int home = below(STATES.length, seed + 2);
        person.name = first + " " + last;
        person.email = first + "." + last + "@mail.example";
        person.card = Long.toString(4_000_000_000_000_000L + below(1_000_000_000, seed + 3));
        person.city = CITIES[home];
        person.state = STATES[home];
        String[] texts = {person.name, person.email, person.card, person.city, person.state};
        person.extra = padding(PERSON_BYTES, 2, texts);
        return person;
    }

    static Auction auction(long number, long id, long lastPerson) {
        long seed = 8 * number;
        Auction auction = new Auction();
        auction.id = id;
        auction.time = START + number;
        auction.expires = auction.time + 1 + below(DAY, seed);
        auction.initialBid = price(seed + 1);
        auction.reserve = auction.initialBid + price(seed + 2);
        auction.seller = someone(lastPerson, seed + 3);
        auction.category = FIRST_CATEGORY + below(CATEGORIES, seed + 5);
        auction.item = "item " + id;
        auction.description = padding(AUCTION_BYTES, 7, auction.item);
        return auction;
    }

    static Bid bid(long number, long lastAuction, long lastPerson) {
        long seed = 8 * number;
        Bid bid = new Bid();
        bid.auction =
                Application.fraction(seed) < BIDS_ON_FAVOURITE
                        ? lastAuction - lastAuction % FAVOURITE
                        : lastAuction - below(Math.min(OPEN_AUCTIONS, lastAuction + 1), seed + 1);
        bid.bidder = someone(lastPerson, seed + 2);
        bid.price = price(seed + 4);
        bid.time = START + number;
        bid.channel = CHANNELS[below(CHANNELS.length, seed + 5)];
        bid.url = "https://bid.example/" + bid.auction;
        bid.extra = padding(BID_BYTES, 4, bid.channel, bid.url);
        return bid;
    }

    /** A person who came lately; draws two numbers. */
    static long someone(long lastPerson, long seed) {
        long person =
                Application.fraction(seed) < ACTS_OF_FAVOURITE
                        ? lastPerson - lastPerson % FAVOURITE
                        : lastPerson - below(Math.min(ACTIVE_PERSONS, lastPerson + 1), seed + 1);
        return person % PEOPLE;
    }

    /** Cents: as often between 1 and 10 dollars as between 100 000 and a million. */
    static long price(long seed) {
        return Math.round(Math.pow(10, 6 * Application.fraction(seed)) * 100);
    }

    static int below(long bound, long seed) {
        return (int) Math.floorMod(Application.scrambled(seed), bound);
    }

    /** A text that makes up what numbers and texts lack of a size. */
    static String padding(int bytes, int numbers, String... texts) {
        int missing = bytes - FRAME - numbers * NUMBER - TEXT;
        for (String text : texts) {
            missing -= TEXT + text.length();
        }
        return "x".repeat(Math.max(missing, 0));
    }

    /** A person, an auction or a bid; the others are null. */
    public static final class Event {
        public Person person;
        public Auction auction;
        public Bid bid;
    }

    public static final class Person {
        public long id, time;
        public String name, email, card, city, state, extra;
    }

    public static final class Auction {
        public long id, time, expires, initialBid, reserve, seller, category;
        public String item, description;
    }

    public static final class Bid {
        public long auction, bidder, price, time;
        public String channel, url, extra;
    }
}
