"""Policies that build a placement from nothing: what they have in common, and how they learn."""
