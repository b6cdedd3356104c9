"""Scheduling one pass: tasks as arrays, ranks, and where on a core there is room."""
