"""An SQL job on a remote cluster, pinned by the exported module beside it."""

import sys

from placed import placed
from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

host, port, _ = sys.argv[1:]
settings = Configuration()
for name, value in {
    "execution.target": "remote",
    "rest.address": host,
    "rest.port": port,
    "pipeline.operator-chaining.enabled": "false",
}.items():
    settings.set_string(name, value)
env = StreamExecutionEnvironment.get_execution_environment()
env.configure(settings)
env.set_parallelism(1)
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
