"""Flink's REST interface: its client, its answers, and the plan of a running job."""
