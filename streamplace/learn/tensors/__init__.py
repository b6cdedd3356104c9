"""Learning in tensors, on a CPU or a GPU: draws, rewards, and memories of placements."""
