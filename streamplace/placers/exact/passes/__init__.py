"""Proofs about one pass: no schedule is shorter."""
