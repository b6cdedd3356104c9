"""Suffixes of files by their content; imports nothing, so that help stays fast."""

LINES = (".jsonl", ".jsonl.gz")
"""Data sets, one document per line."""
ONE_GRAPH = (".json", ".json.gz")
GRAPHS = (".jsonl.gz", ".jsonl", ".json", ".json.gz")
"""Data sets and single graphs."""
EXPORTED = (".csv", ".graphml")
"""Placements in formats other than JSON, which ``export`` reads."""
PICTURES = (".png", ".svg", ".pdf")
"""Figures with axes."""
DRAWINGS = (".svg", ".html")
"""Drawings of graphs, and reports."""
FILES = {
    ".csv", ".gz", ".html", ".json", ".jsonl", ".pdf", ".png", ".py", ".svg", ".tex", ".toml",
    ".txt", ".xlsx", ".yaml",
}  # fmt: skip
"""Suffixes of files; a folder must not have a name with one of them."""
