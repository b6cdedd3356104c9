"""Flink: exact placement on a stock cluster, and measured costs from a running job."""
