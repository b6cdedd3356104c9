"""Annealing of one pass, over devices and order of tasks."""
