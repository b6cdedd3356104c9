"""Exports for Flink: a registry of `streamplace.engines` finds them."""
