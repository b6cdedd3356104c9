"""Ray: real passes on this machine, and exports of placements."""

from streamplace.engines.ray.export import as_ray

__all__ = ["as_ray"]
