"""Policies that improve placements step by step: what they have in common, and how they learn."""
