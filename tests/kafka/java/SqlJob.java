/* Orders of a topic, counted by key in SQL, into a compacted topic.
 * Arguments: address of the broker. */
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

public final class SqlJob {
    public static void main(String[] arguments) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().set("pipeline.name", "totals of orders");
        tables.executeSql(
                "CREATE TABLE orders (id BIGINT, `key` STRING, amount BIGINT) WITH ("
                        + "'connector' = 'kafka', 'topic' = 'orders', 'format' = 'json', "
                        + "'properties.group.id' = 'streamplace-sql', "
                        + "'scan.startup.mode' = 'earliest-offset', "
                        + "'properties.bootstrap.servers' = '" + arguments[0] + "')");
        tables.executeSql(
                "CREATE TABLE totals (`key` STRING, number BIGINT, PRIMARY KEY (`key`) NOT ENFORCED)"
                        + " WITH ('connector' = 'upsert-kafka', 'topic' = 'totals', "
                        + "'key.format' = 'json', 'value.format' = 'json', "
                        + "'properties.bootstrap.servers' = '" + arguments[0] + "')");
        tables.executeSql(
                "INSERT INTO totals SELECT `key`, COUNT(*) FROM orders WHERE id >= 0 GROUP BY `key`");
    }
}
