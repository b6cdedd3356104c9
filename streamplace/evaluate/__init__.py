"""Judging placements and placers: explanations, statistics, comparisons and plots."""
