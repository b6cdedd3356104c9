"""An environment of PyFlink whose jobs run on a remote cluster."""

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment


def remote(host, port, more):
    address = {"execution.target": "remote", "rest.address": host, "rest.port": port}
    settings = Configuration()
    for name, value in (address | more).items():
        settings.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(settings)
    env.set_parallelism(1)
    return env
