"""Defaults that the command line states, too; this file imports nothing."""

USUAL_ERROR = 0.15
"""Share by which operators cost more than measured: nine of ten predictions are within it."""
