"""Flink on this machine: find it, configure it, start it."""
