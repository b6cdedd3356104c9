"""Evaluation of placements and placers: explanations, statistics, comparisons and plots."""
