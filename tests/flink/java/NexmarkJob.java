/* Queries 5 (hot items) and 8 (new users who sell) of Nexmark in SQL, on its schema: one table of
 * persons, auctions and bids, with views of each. What is in it follows from a sequence.
 * Arguments: the number of the query, how many events, how many per second, a folder for the results. */
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

public final class NexmarkJob {
    private static final String EVENTS =
            "CREATE TABLE datagen (n BIGINT,"
                    + " event_type AS CASE MOD(n, 50) WHEN 0 THEN 0 WHEN 1 THEN 1 WHEN 2 THEN 1"
                    + " WHEN 3 THEN 1 ELSE 2 END,"
                    + " person AS CAST(ROW(n / 50, CONCAT('p', CAST(n AS STRING)))"
                    + " AS ROW<id BIGINT, name STRING>),"
                    + " auction AS CAST(ROW(n, n / 50 - MOD(n, 7)) AS ROW<id BIGINT, seller BIGINT>),"
                    + " bid AS CAST(ROW(n / 200 + MOD(n * n, 11), MOD(n, 97), MOD(n * 31, 1000))"
                    + " AS ROW<auction BIGINT, bidder BIGINT, price BIGINT>),"
                    + " customTime AS TO_TIMESTAMP_LTZ(n * 10, 3),"
                    + " WATERMARK FOR customTime AS customTime - INTERVAL '4' SECOND) WITH ("
                    + " 'connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0',"
                    + " 'fields.n.end' = '%s', 'rows-per-second' = '%s')";
    private static final String[] VIEWS = {
        "CREATE VIEW person AS SELECT person.id, person.name, customTime FROM datagen"
                + " WHERE event_type = 0",
        "CREATE VIEW auction AS SELECT auction.id, auction.seller, customTime FROM datagen"
                + " WHERE event_type = 1",
        "CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, customTime FROM datagen"
                + " WHERE event_type = 2"
    };
    private static final String FILES =
            " WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '%s')";
    private static final String COUNTS =
            "SELECT auction, COUNT(*) AS num, window_start AS since, window_end AS till FROM TABLE(HOP("
                    + "TABLE bid, DESCRIPTOR(customTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
                    + " GROUP BY auction, window_start, window_end";
    private static final String HOT =
            "INSERT INTO found SELECT c.auction, c.num, CAST(c.till AS STRING) FROM (" + COUNTS
                    + ") AS c JOIN (SELECT MAX(num) AS most, since, till FROM (" + COUNTS
                    + ") GROUP BY since, till) AS m ON c.since = m.since AND c.till = m.till"
                    + " AND c.num >= m.most";
    private static final String TUMBLED =
            " FROM TABLE(TUMBLE(TABLE %s, DESCRIPTOR(customTime), INTERVAL '10' SECOND))";
    private static final String NEW =
            "INSERT INTO found SELECT p.id, p.name, CAST(p.since AS STRING) FROM (SELECT id, name,"
                    + " window_start AS since, window_end AS till" + String.format(TUMBLED, "person")
                    + " GROUP BY id, name, window_start, window_end) AS p JOIN (SELECT seller,"
                    + " window_start AS since, window_end AS till" + String.format(TUMBLED, "auction")
                    + " GROUP BY seller, window_start, window_end) AS a"
                    + " ON p.id = a.seller AND p.since = a.since AND p.till = a.till";

    public static void main(String[] arguments) {
        boolean isHot = arguments[0].equals("5");
        TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        tables.getConfig().set("execution.checkpointing.interval", "500 ms");
        tables.getConfig().set("table.local-time-zone", "UTC");
        long last = Long.parseLong(arguments[1]) - 1;
        tables.executeSql(String.format(EVENTS, last, arguments[2]));
        for (String view : VIEWS) {
            tables.executeSql(view);
        }
        String columns = isHot ? "auction BIGINT, num BIGINT" : "id BIGINT, name STRING";
        String found = "CREATE TABLE found (" + columns + ", moment STRING)";
        tables.executeSql(found + String.format(FILES, arguments[3]));
        tables.executeSql(isHot ? HOT : NEW);
    }
}
