"""Objectives that placements are evaluated by, one per file."""
