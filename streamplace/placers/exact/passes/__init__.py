"""Proofs for the makespan: no schedule is shorter."""
