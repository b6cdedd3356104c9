"""Annealing for the throughput, over units of operators and the loads of resources."""
