"""Annealing of one pass: devices and order of tasks."""
