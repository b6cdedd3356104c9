"""Models that can be trained: one file, one model; light modules that import torch when built."""
