from streamplace.flink.engine import FlinkEngine as FlinkEngine
from streamplace.flink.move.settling import MoveSettings as MoveSettings
from streamplace.flink.program.program import Program as Program
from streamplace.flink.rest.client import Rest as Rest
