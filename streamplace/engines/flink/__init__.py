"""Flink: a running cluster measured, placed and moved; exports; and the hook of PyFlink programs.

``FlinkEngine`` is the cluster, ``Rest`` how it is asked, and ``Program`` what a job runs.
"""

import importlib
from typing import TYPE_CHECKING, Any

from streamplace.engines.flink.export import as_flink
from streamplace.engines.flink.placed import placed

if TYPE_CHECKING:
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.program import Program
    from streamplace.engines.flink.rest import Rest

_HOME = {"FlinkEngine": "engine", "Program": "program", "Rest": "rest"}

__all__ = ["FlinkEngine", "Program", "Rest", "as_flink", "placed"]


def __getattr__(name: str) -> Any:
    """Load a public name where it is first used: exports need none of these."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
