"""Proofs for the throughput: no placement has a lower peak load."""
