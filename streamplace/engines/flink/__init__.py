"""Flink: measure, place and move jobs of a running cluster; exports; the hook of PyFlink programs.

``FlinkEngine`` is the cluster, ``Rest`` its REST interface, and ``Program`` the code of a job.
"""

import importlib
from typing import TYPE_CHECKING, Any

from streamplace.engines.flink.pin.export import as_flink
from streamplace.engines.flink.pin.placed import placed

if TYPE_CHECKING:
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.program.program import Program
    from streamplace.engines.flink.rest.client import Rest

_HOME = {"FlinkEngine": "engine", "Program": "program.program", "Rest": "rest.client"}

__all__ = ["FlinkEngine", "Program", "Rest", "as_flink", "placed"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, because exports need none of them."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
