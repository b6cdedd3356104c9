"""Flink: exact placement on a stock cluster, and measured costs from a running job."""

from streamplace.engines.flink.export import as_flink
from streamplace.engines.flink.placed import placed

__all__ = ["as_flink", "placed"]
