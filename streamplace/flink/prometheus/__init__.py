"""Measure a job by its history in Prometheus."""
