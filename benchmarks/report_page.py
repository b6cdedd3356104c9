"""Pages of reports in Debian's Chromium: size, first paint, a moved operator, frames per second.

python benchmarks/report_page.py [--operators 100 5000] [--pictures FOLDER]

Frames are compared with those of an empty page in the same run, so that a busy machine shows.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from report_browser import Browser, browser

from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.display.report import Report
from streamplace.objectives.registry import OBJECTIVES
from streamplace.report.document import VERSION, ReportDocument
from streamplace.report.pages import as_page
from streamplace.report.problems import Shown, problem_part

KINDS = ("parse", "filter", "join", "window", "map", "count", "enrich")
MOVE = """
const stage = document.querySelector('.now .stage');
const key = (name) =>
    stage.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}));
stage.focus();
key('ArrowRight');
const times = [];
for (let i = 0; i < 30; i++) {
    const begin = performance.now();
    key(String(1 + (i + 1) % 4));
    times.push(performance.now() - begin);
}
return times;
"""
FRAMES = """
const [act, done] = [arguments[0], arguments[1]];
const stage = document.querySelector('.now .stage');
const rect = (stage || document.body).getBoundingClientRect();
const times = [];
const step = (now) => {
    times.push(now);
    const at = {clientX: rect.x + 300, clientY: rect.y + 200, bubbles: true, cancelable: true};
    const deltaY = times.length % 20 < 10 ? 25 : -25;
    if (act) stage.dispatchEvent(new WheelEvent('wheel', {deltaY, ctrlKey: true, ...at}));
    if (times.length < 90) requestAnimationFrame(step);
    else done(times.slice(1).map((time, k) => time - times[k]));
};
requestAnimationFrame(step);
"""
PAINT = "return performance.getEntriesByName('first-contentful-paint').map((p) => p.startTime)[0]"
SHOWN = "return document.querySelector('#page[data-shown]') !== null"


def problem_of(n: int) -> Problem:
    """A graph whose operators receive from one or two of those before, on devices of four cores."""
    rng = np.random.default_rng(n)
    names = [f"{KINDS[v % len(KINDS)]}-{v}" for v in range(n)]
    n_sources = max(1, n // 60)
    operators, streams = [], []
    for v, name in enumerate(names):
        rate = float(rng.integers(1, 5)) * 1e3 if v < n_sources else 0.0
        size, ipt = float(rng.uniform(50, 600)), float(rng.uniform(1e4, 6e4))
        operators.append(Operator(name, ipt=ipt, payload=size, rate=rate))
        if v >= n_sources:
            first = max(0, v - max(3, n // 12))
            feeders = {int(u) for u in rng.integers(first, v, rng.integers(1, 3))}
            streams += [Stream(names[u], name, float(rng.uniform(0.3, 0.8))) for u in feeders]
    devices = [
        Device(f"node-{a}", mips=2500 * (1 + a % 3), cores=4) for a in range(max(4, n // 125))
    ]
    return Problem(StreamGraph.of(f"{n} operators", operators, streams), Cluster.of(devices))


def page_of(problem: Problem) -> str:
    """Page of a problem with a placement in blocks."""
    n, d = problem.n_operators, problem.n_devices
    position = np.empty(n, np.int64)
    position[problem.graph.order] = np.arange(n)
    shown = Shown("blocks", problem.placement(position * d // n))
    document = ReportDocument(
        version=VERSION,
        made_by="streamplace",
        title=problem.graph.name,
        notes=[],
        problems=[problem_part(problem, [shown], OBJECTIVES["throughput"])],
    )
    return as_page(document, Report((), problem.graph.name))


def measure(session: Browser, file: Path) -> tuple[float, float, list[float], list[float]]:
    """First paint and all shown [ms after the request], moves [ms], frames [ms]."""
    begin = time.perf_counter()
    session.open(file)
    while not session.run(SHOWN):
        time.sleep(0.02)
    shown = 1e3 * (time.perf_counter() - begin)
    time.sleep(0.5)
    paint = float(session.run(PAINT) or 0)
    return paint, shown, session.run(MOVE), session.wait(FRAMES, True)


def main() -> None:
    """Print a line for every size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=int, nargs="+", default=[100, 5000])
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, browser() as session:
        session.size(1280, 900)
        idle = median(session.wait(FRAMES, False))
        print("operators    kB  first paint ms  shown ms  move ms (median, most)  frame/idle frame")
        for n in options.operators:
            file = Path(folder) / "report.html"
            file.write_text(page_of(problem_of(n)), encoding="utf-8")
            paint, shown, moves, frames = measure(session, file)
            print(
                f"{n:9d} {file.stat().st_size / 1e3:5.0f} {paint:15.0f} {shown:9.0f}"
                f" {median(moves):9.1f} {max(moves):12.1f}"
                f" {median(frames) / idle:17.2f} ({1e3 / median(frames):.0f} frames/s)"
            )
            if options.pictures:
                session.picture(options.pictures / f"report-{n}.png")


if __name__ == "__main__":
    main()
