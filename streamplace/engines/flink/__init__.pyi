from streamplace.engines.flink.engine import FlinkEngine as FlinkEngine
from streamplace.engines.flink.export import as_flink as as_flink
from streamplace.engines.flink.move.settings import MoveSettings as MoveSettings
from streamplace.engines.flink.program.program import Program as Program
from streamplace.engines.flink.rest.client import Rest as Rest
