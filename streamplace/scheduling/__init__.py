"""Scheduling of one pass: tasks as arrays, ranks, and list schedulers."""
