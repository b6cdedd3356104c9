"""An SQL job on a remote cluster, pinned by the exported module beside it."""

import sys

from placed import placed
from pyflink.table import StreamTableEnvironment
from remote import remote

host, port, _ = sys.argv[1:]
env = remote(host, port, {"pipeline.operator-chaining.enabled": "false"})
tables = StreamTableEnvironment.create(env)
tables.execute_sql(
    "CREATE TABLE bids (item INT, price INT) WITH "
    "('connector' = 'datagen', 'rows-per-second' = '100', 'fields.item.max' = '9')"
)
tables.execute_sql("CREATE TABLE totals (item INT, total BIGINT) WITH ('connector' = 'blackhole')")
statements = tables.create_statement_set()
statements.add_insert_sql("INSERT INTO totals SELECT item, COUNT(*) FROM bids GROUP BY item")
statements.attach_as_datastream()
print(placed(env).execute_async("totals").get_job_id())
