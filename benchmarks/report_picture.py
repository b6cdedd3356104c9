"""The picture of a report in the guides: that of the demo, as Chromium shows it.

``python benchmarks/report_picture.py`` writes docs/assets/report.png.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

import streamplace

PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "report.png"
SIZE = 1280, 760
PLACERS = "metis", "auto"


def main() -> None:
    browser = which("chromium") or which("google-chrome")
    if browser is None:
        sys.exit("error: there is no Chromium; install one, as with: apt install chromium")
    (graph,) = streamplace.generate("branched", branches=3, depth=3, devices=3, copies=1, seed=12)
    placed = [streamplace.place(graph, placer=name) for name in PLACERS]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        streamplace.draw(graph, placed, out=page)
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={folder}/browser", f"--window-size={SIZE[0]},{SIZE[1]}",
            "--virtual-time-budget=20000", f"--screenshot={PICTURE}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(f"{PICTURE.stat().st_size} bytes → {PICTURE}")


if __name__ == "__main__":
    main()
