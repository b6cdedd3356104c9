"""Draws the pictures that the pages show of recorded runs, each legible at a width of 375 pixels.

`FILES` has a function for each file of ``assets/``; `generate.py` writes them.
"""

import json
from collections.abc import Callable, Sequence
from html import escape
from math import log2
from pathlib import Path
from statistics import mean
from typing import Any

DOCS = Path(__file__).parent
WIDTH, TEXT = 375, 12
INK, PALE, LINE = "#202428", "#5f6770", "#d5dade"
BLUE, ORANGE, GREEN = "#77aadd", "#ee8866", "#44bb99"
FULL = 0.95
"""Share of its limit from which on a TaskManager is drawn as full."""
LIMITS = {"tm-0": 0.27, "tm-1": 0.27, "tm-2": 0.09, "tm-3": 0.09}
"""Cores of the TaskManagers of the kind of cluster *unequal*."""
NOISE = 1.4
"""Ratio of two runs of one layout that nine of ten pairs do not exceed."""
RIGHT: dict[str, Any] = {"size": 11, "pale": True, "anchor": "end"}


def taskmanagers() -> str:
    """CPU of every TaskManager under Flink's default and after a move, of one job."""
    own = [r for r in _runs() if (r["job"], r["kind"]) == ("riot-etl", "unequal")]
    parts, y = list[str](), 24
    for arm, words in (("NONE", "Flink's default"), ("flink move", "after flink move")):
        (run,) = (r for r in own if r["arm"] == arm)
        parts += [_text(10, y, f"{words}: {run['rate']:,.0f} tuples/s", bold=True)]
        for name, cores in LIMITS.items():
            y += 24
            used, full = run["used"][name], 280 / max(LIMITS.values())
            colour = ORANGE if used / cores >= FULL else BLUE
            parts += [
                _text(10, y, name),
                _box(52, y - 12, cores * full, 16, "none", LINE),
                _box(52, y - 12, min(used, cores) * full, 16, colour),
                _text(58, y, f"{used:.2f} of {cores:.2f} cores"),
            ]
        y += 36
    return _svg(y - 14, "CPU of four TaskManagers under Flink's default and after a move", parts)


COMMANDS = (
    ("flink profile", "measures a running job", "REST address"),
    ("flink advise", "machines that a rate needs", "REST address, your offers"),
    ("flink move", "tries layouts, keeps the best", "pins in the configuration, savepoints"),
    ("flink watch", "moves again when that pays", "the same; it keeps running"),
)


def commands() -> str:
    """What each command does, and what it needs."""
    parts, y = [_text(10, 20, "On your machine", pale=True)], 30
    for number, (name, does, needs) in enumerate(COMMANDS):
        colour = GREEN if number < 2 else ORANGE
        parts += [_box(10, y, 245, 62, "#ffffff", colour), _box(10, y, 5, 62, colour)]
        effect = "changes nothing" if number < 2 else "stops the job"
        parts += [_text(22, y + 18, name, bold=True), _text(248, y + 18, effect, **RIGHT)]
        parts += [_text(22, y + 36, does), _text(22, y + 54, f"needs {needs}", size=10, pale=True)]
        parts.append(_arrow(257, y + 30, 286, y + 30, both=True))
        y += 76
        if number < len(COMMANDS) - 1:
            parts.append(_arrow(120, y - 13, 120, y - 1))
    parts += [_text(288, 20, "Flink", pale=True), _box(288, 30, 80, y - 44, "#eef2f6", LINE)]
    parts += [_text(294, 52, "JobManager", size=11), _text(294, 68, "REST, 8081", size=11)]
    parts += [_text(294, 204, "savepoint,"), _text(294, 220, "start")]
    return _svg(y, "profile, advise, move and watch run on your machine and ask Flink", parts)


PARTS = {  # x, y, width, words
    "graph": (10, 10, 110, "rates, costs"),
    "cluster": (132, 10, 110, "devices, links"),
    "constraints": (254, 10, 111, "pins, tags"),
    "placer": (132, 94, 110, "auto, METIS, …"),
    "objective": (254, 94, 111, "throughput, …"),
    "placement": (132, 178, 110, "operator → device"),
    "engine": (10, 262, 170, "Flink, Ray, Kubernetes"),
    "simulator": (195, 262, 170, "steady, one pass, queues"),
}
ARROWS = (
    ("graph", "placer"), ("cluster", "placer"), ("constraints", "placer"),
    ("placer", "placement"), ("placement", "engine"), ("placement", "simulator"),
)  # fmt: skip


def architecture() -> str:
    """The parts, and what goes where."""
    parts = list[str]()
    for start, end in ARROWS:
        x, y, width, _ = PARTS[start]
        to_x, to_y, to_width, _ = PARTS[end]
        parts.append(_arrow(x + width / 2, y + 48, to_x + to_width / 2, to_y - 2))
    parts.append(_arrow(244, 118, 252, 118, both=True))
    for name, (x, y, width, words) in PARTS.items():
        colour = {"placer": ORANGE, "placement": BLUE}.get(name, "#eef2f6")
        middle = x + width / 2
        parts += [_box(x, y, width, 48, colour, LINE)]
        parts += [_text(middle, y + 20, name, bold=True, anchor="middle")]
        parts += [_text(middle, y + 37, words, anchor="middle", size=11)]
    return _svg(320, "A graph, a cluster and constraints go into a placer", parts)


CLUSTERS = ("unequal", "skewed", "equal", "scarce network")


def against_flink() -> str:
    """Rate after a move over that of Flink's best mode, a dot for each job, with the noise."""
    ratios: dict[str, list[float]] = {kind: [] for kind in CLUSTERS}
    for kind in CLUSTERS:
        for job in dict.fromkeys(r["job"] for r in _runs() if r["kind"] == kind):
            rates = {
                r["arm"]: r["rate"]
                for r in _runs()
                if (r["job"], r["kind"]) == (job, kind) and not r["disturbed"]
            }
            ratios[kind].append(
                rates["flink move"] / max(rates[mode] for mode in ("NONE", "SLOTS", "TASKS"))
            )

    def x(ratio: float) -> float:
        return 135 + 230 * (log2(ratio) + 0.8) / 2.1

    bottom = 36 + 46 * len(CLUSTERS)
    parts = [_box(x(1 / NOISE), 30, x(NOISE) - x(1 / NOISE), bottom - 30, "#eef2f6")]
    parts.append(_text(x(1), 20, "noise: 1.4× either way", anchor="middle", size=11, pale=True))
    for tick in (0.6, 1, 1.4, 2):
        parts.append(f'<path d="M{x(tick):.1f} 30V{bottom}" stroke="{LINE}"/>')
        parts.append(_text(x(tick), bottom + 16, f"{tick}×", anchor="middle", size=11))
    for row, (kind, own) in enumerate(ratios.items()):
        y = 56 + 46 * row
        parts += [_text(10, y, kind), _text(10, y + 15, f"{len(own)} jobs", size=11, pale=True)]
        for ratio in own:
            parts.append(f'<circle cx="{x(ratio):.1f}" cy="{y}" r="5" fill="{BLUE}" {EDGE}/>')
        middle = x(2 ** mean(map(log2, own)))
        parts.append(f'<path d="M{middle:.1f} {y - 13}v26" stroke="{ORANGE}" stroke-width="3"/>')
    parts.append(_text(188, bottom + 34, "rate ÷ Flink's best mode", size=11, pale=True))
    return _svg(bottom + 44, "Rates after flink move relative to Flink's best mode", parts)


EDGE = f'fill-opacity="0.75" stroke="{INK}" stroke-width="0.7"'
STEPS = (0, 0.5, 1, 2)
PAPERS = DOCS / "results" / "papers.md"
DRAWN = {"random": PALE, "placeto": ORANGE, "giph": BLUE, "giph-task-eft": GREEN}


def episodes() -> str:
    """Schedule length ratio over the steps of an episode, from the table of the page."""
    rows = PAPERS.read_text(encoding="utf-8").splitlines()
    table = [[c.strip() for c in row.strip("| ").split("|")] for row in rows if row[:1] == "|"]
    values = {c[0]: list(map(float, c[1:5])) for c in table if c[0] in DRAWN}
    at_once = next(float(c[4]) for c in table if c[0] == "heft")

    def point(step: float, value: float) -> tuple[float, float]:
        return 40 + 112 * step, 30 + 240 * (2 - value)

    parts = list[str]()
    for tick in (1.25, 1.5, 1.75):
        _, y = point(0, tick)
        parts += [f'<path d="M40 {y}H264" stroke="{LINE}"/>', _text(8, y + 4, f"{tick}", size=11)]
    for step in STEPS:
        parts.append(_text(point(step, 0)[0], 240, f"{step} N", anchor="middle", size=11))
    for name, own in values.items():
        points = [point(step, value) for step, value in zip(STEPS, own, strict=True)]
        way = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        line = f'fill="none" stroke="{DRAWN[name]}" stroke-width="2.5"'
        parts.append(f'<polyline points="{way}" {line}/>')
        lift = {"giph": 9, "giph-task-eft": -6, "placeto": -2}.get(name, 9)
        parts.append(_text(270, points[-1][1] + lift, name))
    _, heft = point(0, at_once)
    parts.append(f'<path d="M40 {heft}H264" stroke="{INK}" stroke-dasharray="5 4"/>')
    parts.append(_text(270, heft + 12, "heft, at once"))
    parts.append(_text(40, 18, "mean schedule length ratio by steps, N tasks", size=11, pale=True))
    return _svg(250, "Mean schedule length ratio over the steps of an episode", parts)


FILES: dict[str, Callable[[], str]] = {
    "architecture.svg": architecture,
    "taskmanagers.svg": taskmanagers,
    "commands.svg": commands,
    "against-flink.svg": against_flink,
    **({"episodes.svg": episodes} if PAPERS.exists() else {}),
}


def _runs() -> list[dict[str, Any]]:
    lines = (DOCS / "assets" / "against-flink.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}"'
    font = "font-family=\"'DejaVu Sans', Verdana, sans-serif\""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>'
    back = _box(0, 0, WIDTH, height, "#ffffff")
    return "\n".join([head, f"<title>{escape(title)}</title>", back, *parts, "</svg>"]) + "\n"


def _text(
    x: float, y: float, words: str, *, size: int = TEXT, bold: bool = False, pale: bool = False,
    anchor: str = "start",
) -> str:  # fmt: skip
    weight = ' font-weight="bold"' if bold else ""
    style = f'font-size="{size}" fill="{PALE if pale else INK}" text-anchor="{anchor}"{weight}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, fill: str, line: str = "none") -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} rx="3" fill="{fill}" stroke="{line}"/>'


def _arrow(x: float, y: float, to_x: float, to_y: float, *, both: bool = False) -> str:
    heads = _head(x, y, to_x, to_y) + (_head(to_x, to_y, x, y) if both else "")
    return f'<path d="M{x} {y}L{to_x} {to_y}{heads}" fill="none" stroke="{PALE}"/>'


def _head(x: float, y: float, to_x: float, to_y: float) -> str:
    a, b = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
    left, right = (-5 * a - 3 * b, -5 * b - 3 * a), (-5 * a + 3 * b, -5 * b + 3 * a)
    return f"M{to_x + left[0]} {to_y + left[1]}L{to_x} {to_y}L{to_x + right[0]} {to_y + right[1]}"
