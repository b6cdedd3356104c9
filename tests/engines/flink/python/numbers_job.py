"""A PyFlink job with namesakes on a remote cluster, pinned by the exported module beside it."""

import sys

from placed import placed
from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

host, port, jar = sys.argv[1:]
settings = Configuration()
for name, value in {
    "execution.target": "remote",
    "rest.address": host,
    "rest.port": port,
    "pipeline.jars": f"file://{jar}",
    "python.executable": sys.executable,
    "python.operator-chaining.enabled": "false",
}.items():
    settings.set_string(name, value)
env = StreamExecutionEnvironment.get_execution_environment()
env.configure(settings)
env.set_parallelism(1)
numbers = NumberSequenceSource(0, 10**12)
source = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
squares = source.map(lambda x: x * x, output_type=Types.LONG())
less = squares.map(lambda x: x - 1, output_type=Types.LONG())
less.filter(lambda x: x % 1000 == 0).name("pick").print().name("show")
print(placed(env).execute_async("numbers").get_job_id())
