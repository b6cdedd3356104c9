"""Measure a running job and its cluster."""
