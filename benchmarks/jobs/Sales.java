/*
 * Sales of a chain of shops in SQL: totals of every product and second, and large sales as they
 * come, both written to files that checkpoints commit.
 * Arguments: offered sales per second; share of sales of one product (0).
 */
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamStatementSet;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

public final class Sales {
    static final int PRODUCTS = 1_000;

    public static void main(String[] arguments) throws Exception {
        double skew = arguments.length > 1 ? Double.parseDouble(arguments[1]) : 0;
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(3_000);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        DataStream<Sale> sales =
                Application.source(
                        env,
                        "tills",
                        new String[] {arguments[0]},
                        number -> sale(number, skew),
                        Types.POJO(Sale.class));
        Schema columns =
                Schema.newBuilder()
                        .column("product", DataTypes.INT())
                        .column("shop", DataTypes.STRING())
                        .column("cents", DataTypes.BIGINT())
                        .columnByExpression("sold", "PROCTIME()")
                        .build();
        tables.createTemporaryView("sales", sales, columns);
        tables.executeSql(
                "CREATE TEMPORARY TABLE totals (ended TIMESTAMP(3), product INT, n BIGINT,"
                        + " cents BIGINT, shops BIGINT)" + files("totals"));
        tables.executeSql(
                "CREATE TEMPORARY TABLE large_sales (product INT, shop STRING, euros DECIMAL(18, 2))"
                        + files("large_sales"));
        StreamStatementSet both = tables.createStatementSet();
        both.addInsertSql(
                "INSERT INTO totals SELECT window_end, product, COUNT(*), SUM(cents),"
                        + " COUNT(DISTINCT shop) FROM TABLE(TUMBLE(TABLE sales, DESCRIPTOR(sold),"
                        + " INTERVAL '1' SECOND)) GROUP BY window_start, window_end, product");
        both.addInsertSql(
                "INSERT INTO large_sales SELECT product, UPPER(REGEXP_REPLACE(shop, '[0-9]+$', '')),"
                        + " CAST(cents / 100.0 AS DECIMAL(18, 2)) FROM sales WHERE cents > 90000");
        both.attachAsDataStream();
        env.execute("sales");
    }

    static String files(String name) {
        return " WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://"
                + System.getProperty("java.io.tmpdir") + "/sales/" + name + "')";
    }

    static Sale sale(long number, double skew) {
        Sale sale = new Sale();
        boolean isSkewed = Application.fraction(~number) < skew;
        sale.product = isSkewed ? 0 : Math.floorMod(Application.scrambled(number), PRODUCTS);
        sale.shop = "shop " + number % 37;
        sale.cents = Math.floorMod(Application.scrambled(-number), 100_000);
        return sale;
    }

    /** Something that was sold. */
    public static final class Sale {
        public int product;
        public String shop;
        public long cents;
    }
}
