"""Limits of a page: the largest graphs and clusters that it shows."""

MAX_OPERATORS = 20_000
"""Most operators of a graph that a page shows; a page of a larger one has its words alone."""
MAX_LINKS = 250_000
"""Most links between groups of devices in a document."""
MAX_GAP = 1e6
"""Largest gap in a document: that of a plan with the bound 0 is infinite."""
TOO_LARGE = f"Graphs of more than {MAX_OPERATORS:,} operators are not shown."
