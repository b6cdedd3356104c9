/* Sums bids by item and second, as Nexmark's windowed queries do. */
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

public final class SqlJob {
    public static void main(String[] arguments) {
        TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        tables.executeSql(
                "CREATE TABLE bids (item INT, price INT, moment AS PROCTIME()) WITH ('connector' = "
                        + "'datagen', 'rows-per-second' = '100', 'fields.item.max' = '9')");
        tables.executeSql(
                "CREATE TABLE totals (item INT, total BIGINT) WITH ('connector' = 'blackhole')");
        tables.executeSql(
                "INSERT INTO totals SELECT item, COUNT(*) FROM TABLE(TUMBLE(TABLE bids, "
                        + "DESCRIPTOR(moment), INTERVAL '1' SECOND)) "
                        + "GROUP BY item, window_start, window_end");
    }
}
