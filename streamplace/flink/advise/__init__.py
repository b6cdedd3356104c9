"""Advice on machines for a running job."""
