"""Annealing of the throughput: units of operators, and the loads that they cause."""
