"""Ray: exports of placements, and real passes on a local Ray."""

from streamplace.engines.ray.export import as_ray

__all__ = ["as_ray"]
