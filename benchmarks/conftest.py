"""What pytest collects here: the timings of ``test_*.py``; everything else is run by hand."""

from pathlib import Path

collect_ignore = [
    path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
]
