"""Pytest collects the timings of ``test_*.py`` here; everything else is run by hand."""

from pathlib import Path

collect_ignore = [
    path.name for path in Path(__file__).parent.iterdir() if not path.name.startswith("test_")
]
