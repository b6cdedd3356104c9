"""Placers, one per file: each returns a placement for a problem."""
