"""Pytest collects the timings of ``test_*.py`` here; everything else is run by hand."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # timings import graphs of the others
collect_ignore = [
    str(path.relative_to(HERE)) for path in HERE.rglob("*.py") if not path.name.startswith("test_")
]
