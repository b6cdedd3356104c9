"""Evaluation of placements and placers: comparisons, statistics and plots."""
