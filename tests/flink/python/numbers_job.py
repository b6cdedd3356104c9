"""A PyFlink job with namesakes on a remote cluster, pinned by the exported module beside it."""

import sys

from placed import placed
from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from remote import remote

host, port, jar = sys.argv[1:]
settings = {
    "pipeline.jars": f"file://{jar}",
    "python.executable": sys.executable,
    "python.operator-chaining.enabled": "false",
}
env = remote(host, port, settings)
numbers = NumberSequenceSource(0, 10**12)
source = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
squares = source.map(lambda x: x * x, output_type=Types.LONG())
less = squares.map(lambda x: x - 1, output_type=Types.LONG())
less.filter(lambda x: x % 1000 == 0).name("pick").print().name("show")
print(placed(env).execute_async("numbers").get_job_id())
