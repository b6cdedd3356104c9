"""Placers, one per file: each answers a problem with a placement."""
