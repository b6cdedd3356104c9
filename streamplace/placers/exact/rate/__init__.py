"""Proofs about the throughput: no placement has a lower largest load."""
