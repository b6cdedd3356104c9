"""Pytest collects the timings of ``test_*.py`` here; everything else is run by hand."""

from pathlib import Path

HERE = Path(__file__).parent
collect_ignore = [
    str(path.relative_to(HERE)) for path in HERE.rglob("*.py") if not path.name.startswith("test_")
]
