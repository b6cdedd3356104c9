"""Flink: measure, place and move jobs of a running cluster; exports.

``FlinkEngine`` is the cluster, ``Rest`` its REST interface, ``Program`` the code of a job, and
``MoveSettings`` how jobs are moved.
"""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

from streamplace.engines.flink.export import as_flink

if TYPE_CHECKING:
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.move.settings import MoveSettings
    from streamplace.engines.flink.program.program import Program
    from streamplace.engines.flink.rest.client import Rest

_MODULES = {
    "engine": "FlinkEngine",
    "move.settings": "MoveSettings",
    "program.program": "Program",
    "rest.client": "Rest",
}

__all__ = ["FlinkEngine", "MoveSettings", "Program", "Rest", "as_flink"]

__getattr__ = loader(__name__, _MODULES)  # exports need none of them
