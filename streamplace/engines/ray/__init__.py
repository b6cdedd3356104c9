"""Ray: pipelines of actors on a local Ray, real passes, and exports of placements."""

import importlib
from typing import TYPE_CHECKING, Any

from streamplace.engines.ray.export import as_ray

if TYPE_CHECKING:
    from streamplace.engines.ray.engine import RayEngine

__all__ = ["RayEngine", "as_ray"]


def __getattr__(name: str) -> Any:
    """Import the engine when it is first used, because exports do not need it."""
    if name != "RayEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.engine").RayEngine
