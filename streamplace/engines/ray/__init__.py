"""Ray: pipelines of actors on a local Ray, real passes, and exports of placements."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

from streamplace.engines.ray.export import as_ray

if TYPE_CHECKING:
    from streamplace.engines.ray.engine import RayEngine

__all__ = ["RayEngine", "as_ray"]

__getattr__ = loader(__name__, {"engine": "RayEngine"})  # exports do not need the engine
