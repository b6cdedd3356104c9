"""Limits of a page: the largest graphs and clusters that it shows."""

MAX_OPERATORS = 20_000
"""Operators of a graph that a page shows; the page of a larger graph has only text."""
MAX_LINKS = 250_000
"""Links between groups of devices in a document."""
MAX_GAP = 1e6
"""Gap in a document; a plan with the bound 0 has an infinite one."""
TOO_LARGE = f"Graphs of more than {MAX_OPERATORS:,} operators are not shown."
