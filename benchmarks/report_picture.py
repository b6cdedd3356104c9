"""The picture of a report in the guides: that of the demo, as Chromium shows it.

``python benchmarks/report_picture.py`` writes docs/assets/report.png.
"""

import tempfile
import time
from pathlib import Path

from report_browser import browser

import streamplace

PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "report.png"
SIZE = 1280, 820
PLACERS = "metis", "auto"


def main() -> None:
    """Write the picture."""
    (graph,) = streamplace.generate("branched", branches=3, depth=3, devices=3, copies=1, seed=12)
    placed = [streamplace.place(graph, placer=name) for name in PLACERS]
    with tempfile.TemporaryDirectory() as folder, browser() as session:
        page = Path(folder) / "report.html"
        streamplace.draw(graph, placed, out=page)
        session.size(*SIZE)
        session.open(page)
        time.sleep(2)
        session.picture(PICTURE)
    print(f"{PICTURE.stat().st_size} bytes → {PICTURE}")


if __name__ == "__main__":
    main()
