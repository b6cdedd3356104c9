"""The page in Chromium: what it shows, what it computes, and how it is used."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hostile import CANARY, HOSTILE
from html_elements import Elements
from report_browser import BROWSER, DRIVER, browser
from report_example import example as example_document
from report_example import example_problem
from streamsim import throughput as python_throughput

import streamplace.report
from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.display.report import Report
from streamplace.drawing.graphs import NamedPlacements
from streamplace.evaluate.comparison import Comparison, GraphResults
from streamplace.evaluate.records import Record
from streamplace.evaluate.results import ObjectiveResults
from streamplace.io.graphs import graph_to_dict
from streamplace.objectives.registry import OBJECTIVES
from streamplace.objectives.survives import loss_of
from streamplace.report.pages import as_page, document_of
from streamplace.report.problems import Shown, problem_part

PLACERS = ("auto", "metis", "round-robin")

pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver")
AXE = Path(streamplace.report.__file__).parent / "page" / "node_modules" / "axe-core" / "axe.min.js"
HALF = 5e-4 + 1e-12
"""Largest difference of a value in per cent with one decimal, which may lie in the middle."""


@pytest.fixture(scope="module")
def chromium():
    with browser() as session:
        session.size(1280, 900)
        yield session


@pytest.fixture
def example():
    return example_document()


def only_its_problem(example):
    """The example without its other parts."""
    keys = ("version", "made_by", "title", "notes")
    return {key: example[key] for key in keys} | {"problems": example["problems"][:1]}


def shown(chromium, document, folder):
    """Open the page of a document; nothing but its file is asked for, and nothing complains."""
    file = folder / "report.html"
    file.write_text(as_page(document, Report(())), encoding="utf-8")
    chromium.log("browser"), chromium.requests()
    chromium.open(file)
    for _ in range(200):
        time.sleep(0.05)
        if chromium.run("return document.querySelector('#page[data-shown]') !== null"):
            break
    time.sleep(0.3)
    assert chromium.requests() == [file.as_uri()]
    assert chromium.log("browser") == []


def throughput(chromium):
    """The throughput that the page shows, as a share."""
    text = chromium.run("return document.querySelector('.card .figure').textContent")
    return float(text.split()[0]) / 100


def centres(chromium, operator, device):
    """Points inside the box of an operator and inside a device of the list."""
    script = """
        const texts = [...document.querySelectorAll('.now .stage text')];
        const box = texts.find((t) => t.textContent === arguments[0]).getBoundingClientRect();
        const to = document.querySelector(`.device[data-device="${arguments[1]}"] summary`);
        const end = to.getBoundingClientRect();
        return [[box.x + 5, box.y + box.height / 2], [end.x + 20, end.y + end.height / 2]];
    """
    start, end = chromium.run(script, operator, device)
    return tuple(start), tuple(end)


def test_a_drag_gives_what_python_computes(chromium, example, tmp_path):
    problem = example["problems"][0]
    shown(chromium, only_its_problem(example), tmp_path)
    assert throughput(chromium) == pytest.approx(problem["placements"][0]["throughput"], abs=HALF)
    chromium.drag(*centres(chromium, "parse", 3))
    moved = _python_after(problem, operator=2, device=3)
    assert throughput(chromium) == pytest.approx(moved, abs=HALF)
    chromium.press("Control+z")
    assert throughput(chromium) == pytest.approx(problem["placements"][0]["throughput"], abs=HALF)


def test_an_interval_follows_a_drag(chromium, example, tmp_path):
    """A measured rate is 80 to 110 % of the predicted one, and at most what is offered."""
    problem = example["problems"][0]
    problem["errors"] = {"low": 0.8, "high": 1.1, "words": "a confidence of 90 %"}
    shown(chromium, only_its_problem(example), tmp_path)
    chromium.drag(*centres(chromium, "parse", 3))
    script = "return [...document.querySelectorAll('.card')].map((card) => card.textContent)"
    (card,) = (text for text in chromium.run(script) if text.startswith("Tuples/s, likely"))
    offered = float(np.sum(problem["operators"]["rate"]))
    carried = offered * _python_after(problem, operator=2, device=3)
    low, high = card.removeprefix("Tuples/s, likely").partition("with ")[0].split(" to ")
    assert float(low.replace(",", "")) == pytest.approx(0.8 * carried, rel=0.01)
    assert float(high.replace(",", "")) == pytest.approx(1.1 * carried, rel=0.01)
    assert card.endswith("with a confidence of 90 %")


def _python_after(problem, operator, device):
    place = list(problem["placements"][0]["place"])
    place[operator] = device
    return float(python_throughput(example_problem().instance, [place])[0])


def test_keys_alone_move_an_operator(chromium, example, tmp_path):
    problem = example["problems"][0]
    shown(chromium, only_its_problem(example), tmp_path)
    for _ in range(40):
        chromium.press("Tab")
        if chromium.run("return document.activeElement.matches('.now .stage')"):
            break
    chromium.press("Right", "Right", "4")
    assert throughput(chromium) == pytest.approx(
        _python_after(problem, operator=2, device=3), abs=HALF
    )
    said = chromium.run(
        "return document.querySelector('[aria-live=polite].visually-hidden').textContent"
    )
    assert said.startswith("parse is on big. Throughput 31.3 %")


def test_a_device_is_taken_away_and_put_back(chromium, example, tmp_path):
    """By a click and by a key; the pin to the lost device does not count."""
    problem = example["problems"][0]
    whole, place = problem["placements"][0]["throughput"], problem["placements"][0]["place"]
    shown(chromium, only_its_problem(example), tmp_path)
    button = '.device[data-device="1"] > button'
    chromium.click(button)
    note = chromium.run("return document.querySelector('.loss').textContent")
    best = loss_of(example_problem(), example_problem().placement(place), "m0")
    assert throughput(chromium) <= best.relative_throughput + HALF
    assert note.startswith(f"Without m0, at least {100 * throughput(chromium):.1f} % is carried; ")
    assert f"with it, {100 * whole:.1f} %. Only its operators move: " in note
    assert sum(int(n) for n in re.findall(r"(\d+) to", note)) == place.count(1)
    chromium.press("Enter")
    assert throughput(chromium) == pytest.approx(whole, abs=HALF)
    assert chromium.run("return document.querySelector('.loss').textContent") == ""
    chromium.click('.device[data-device="0"] > button')
    note = chromium.run("return document.querySelector('.loss').textContent")
    assert "Only its operators move: 1 to " in note
    chromium.press("Control+z")


def test_what_if_is_off_where_pages_err(chromium, example, tmp_path):
    example["problems"][0]["placements"][0]["throughput"] += 1e-8
    shown(chromium, example, tmp_path)
    text = chromium.run("return document.querySelector('.workbench .notice').textContent")
    assert "computes another value for the throughput" in text
    assert chromium.run("return document.querySelectorAll('.detail select').length") == 0


@pytest.mark.skipif(not AXE.exists(), reason="needs `make page` once")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(chromium, example, tmp_path, dark):
    chromium.size(1280, 900, dark=dark)
    shown(chromium, example, tmp_path)
    chromium.call("POST", "/execute/sync", {"script": AXE.read_text("utf-8"), "args": []})
    script = "const done = arguments[0]; axe.run().then((r) => done(r.violations.map((v) => \
        [v.id, v.impact, v.nodes.map((n) => n.html.slice(0, 200)).slice(0, 3)])));"
    found = chromium.wait(script)
    assert [violation for violation in found if violation[1] in ("serious", "critical")] == []


def test_hostile_names_are_text(chromium, example, tmp_path):
    tags = ("<img src=x onerror=pwned=1>", "<b>", "</script><script>pwned=1</script>")
    names = [*HOSTILE, *tags, "", "\udc00", "a" * 100_000]
    operators = [Operator(name or " ", ipt=1.0, rate=1.0) for name in names[:-3]]
    problem = Problem(StreamGraph.of("<b>", operators, []), Cluster.of([Device("<i>d</i>")]))
    shown_part = Shown("<u>", problem.placement([0] * len(operators)))
    part = problem_part(problem, [shown_part], OBJECTIVES["throughput"])
    part["operators"]["name"] = [*part["operators"]["name"][:-3], *names[-3:]]
    example["problems"] = [part]
    for key in ("comparison", "plan"):
        example.pop(key)
    shown(chromium, example, tmp_path)
    assert not chromium.run(f"return 'pwned' in window || Boolean(window.{CANARY})")
    assert chromium.run("return document.querySelectorAll('main script, main img').length") == 0
    closer = "document.querySelector('[aria-label=\"Zoom in\"]').click()"
    chromium.run(12 * f"{closer};")
    time.sleep(0.2)
    texts = chromium.run(
        "return [...document.querySelectorAll('.now .stage text')].map((t) => t.textContent)"
    )
    assert len(texts) == 2 * len(part["operators"]["name"])
    assert not any(character in text for text in texts for character in "\x00\x1b\n\u202e\u2066")


def test_the_copied_command_simulates(run, chromium, tmp_path):
    """Pasted into a shell as it is, with names that end commands, and after changes."""
    names = [*HOSTILE, "END_OF_PLACEMENT", "\nEND_OF_PLACEMENT\n", f"!!\n>{CANARY}\n"]
    operators = [Operator(name, ipt=1e5, rate=100.0) for name in names]
    file = Path(f"it's $(>{CANARY}).json")
    file.write_text(json.dumps(graph_to_dict(StreamGraph.of("g", operators, []))), "utf-8")
    place = ("place", str(file), "--devices", "2", "--placer", "round-robin")
    assert run(*place, "-o", "report.html").status == 0
    shown(chromium, _document(Path("report.html")), tmp_path)
    assert _pasted(chromium)["relative_throughput"] == pytest.approx(throughput(chromium), abs=HALF)
    before = throughput(chromium)
    chromium.run("document.querySelector('.now .stage').focus()")
    chromium.press("Right", "2")
    chromium.run("""
        const panels = [...document.querySelectorAll('.panel')];
        const field = panels.find((p) => p.textContent.startsWith('Rate')).querySelector('input');
        field.value = String(20 * Number(field.value));
        field.dispatchEvent(new Event('input'));
        field.dispatchEvent(new Event('change'));
    """)
    assert throughput(chromium) != before
    assert _pasted(chromium)["relative_throughput"] == pytest.approx(throughput(chromium), abs=HALF)
    assert not Path(CANARY).exists()


def _document(page):
    return json.loads(Elements(page.read_text(encoding="utf-8")).texts["script#report"])


def _pasted(chromium):
    """Document that a shell prints for the command that the page copies, with --json."""
    copied = chromium.run("""
        let text = '';
        const clipboard = { writeText: (copied) => { text = copied; return Promise.resolve(); } };
        Object.defineProperty(navigator, 'clipboard', { value: clipboard, configurable: true });
        [...document.querySelectorAll('button')]
            .find((b) => b.textContent === 'Copy command').click();
        return text;
    """)
    assert copied.isascii()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash"], input=f"streamplace() {{ command streamplace \"$@\" --json; }}\n{copied}",
        env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    return json.loads(answer.stdout)


def placed_graph(n, devices=5):
    """A random graph of some operators on a cluster."""
    (graph,) = streamplace.generate("random-dag", operators=n, seed=1)
    return Problem(graph, Cluster.uniform(devices))


OUTSIDE = """
    const stage = document.querySelector('.now .stage').getBoundingClientRect();
    return [...document.querySelectorAll('.now .stage :is(rect, path, polygon, text)')]
        .map((one) => one.getBoundingClientRect())
        .filter((one) => one.left < stage.left || one.right > stage.right
            || one.top < stage.top || one.bottom > stage.bottom).length;
"""
OVERLAPS = """
    const boxes = [...document.querySelectorAll(arguments[0])]
        .map((one) => one.getBoundingClientRect()).filter((box) => box.width > 0);
    return boxes.filter((a, i) => boxes.slice(0, i).some((b) => a.left < b.right - 1
        && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length;
"""


@pytest.mark.parametrize(("width", "dark"), [(375, True), (1400, False), (2560, True)])
@pytest.mark.parametrize("n", [5, 50, pytest.param(500, marks=pytest.mark.slow)])
def test_a_graph_fills_its_card_and_nothing_leaves_the_window(chromium, tmp_path, n, width, dark):
    """Neither labels nor panels overlap, and the graph is as wide or as high as its card."""
    problem = placed_graph(n)
    placed = tuple((p, streamplace.place(problem, placer=p).placement) for p in PLACERS)
    named = NamedPlacements(problem, placed, OBJECTIVES["throughput"])
    chromium.size(width, 900, mobile=width < 500, dark=dark)
    shown(chromium, document_of(named.report()), tmp_path)
    assert chromium.run("return document.documentElement.scrollWidth") <= width
    assert chromium.run(OUTSIDE) == 0
    assert chromium.run(OVERLAPS, ".now .stage text") == 0
    assert chromium.run(OVERLAPS, ".panel, .main, .toolbar, .placements, .verdict") == 0
    if n < 500:
        filled = chromium.run("""
            const [graph, card] = ['.now .stage svg > g', '.now .stage']
                .map((css) => document.querySelector(css).getBoundingClientRect());
            return Math.max(graph.width / card.width, graph.height / card.height);
        """)
        assert filled > 0.8
    chromium.size(1280, 900)


def test_a_report_opens_on_the_best_placement(chromium, tmp_path):
    problem, judge = placed_graph(12), OBJECTIVES["throughput"]
    placed = [(p, streamplace.place(problem, placer=p).placement) for p in PLACERS]
    named = NamedPlacements(problem, tuple(placed[::-1]), judge)
    shown(chromium, document_of(named.report()), tmp_path)
    tabs = chromium.run(
        "return [...document.querySelectorAll('.placements button')]"
        ".map((b) => [b.querySelector('bdi').textContent, b.querySelector('.value').textContent])"
    )
    values = {name: judge.value(problem, placement) for name, placement in placed}
    assert [name for name, _ in tabs] == sorted(values, key=lambda name: -values[name])
    assert all(value == f"{values[name]:.1%}".replace("%", " %") for name, value in tabs)
    assert throughput(chromium) == pytest.approx(max(values.values()), abs=HALF)
    chromium.click(".placements button:last-child")
    assert throughput(chromium) == pytest.approx(min(values.values()), abs=HALF)


@pytest.mark.parametrize(("ipt", "limit"), [(4e5, "The CPU"), (1e5, "A subtask")])
def test_one_resource_is_marked_with_the_load_that_makes_it_the_bottleneck(
    chromium, tmp_path, ipt, limit
):
    """The number of the sentence stands where the device is listed, whatever its CPU load."""
    read = Operator("read", ipt=1e3, rate=1e4, max_rate=8e3)
    graph = StreamGraph.of("g", [read, Operator("count", ipt=ipt)], [Stream("read", "count")])
    problem = Problem(graph, Cluster.uniform(2))
    placed = (("p", problem.placement([0, 1])),)
    named = NamedPlacements(problem, placed, OBJECTIVES["throughput"])
    shown(chromium, document_of(named.report()), tmp_path)
    sentence = chromium.run("return document.querySelector('.sentence').textContent")
    assert sentence.startswith(limit)
    need = sentence.partition("would need ")[2].partition(" %")[0]
    (row,) = chromium.run(
        "return [...document.querySelectorAll('.device.limits')].map((d) => d.textContent)"
    )
    assert f"{need} %" in row


def test_every_view_is_shown(chromium, example, tmp_path):
    shown(chromium, example, tmp_path)
    heads = chromium.run("return [...document.querySelectorAll('h2')].map((h) => h.textContent)")
    assert {"Plan", "Comparison"} <= set(heads)
    for label in ("Devices", "Pass", "Graph", "Compare", "Devices", "Compare"):
        chromium.run(
            "[...document.querySelectorAll('button')]"
            ".find((b) => b.textContent === arguments[0]).click()",
            label,
        )
        time.sleep(0.2)
    assert chromium.log("browser") == []
    assert "critical path" in chromium.run("return document.querySelector('.gantt').ariaLabel")


def test_cells_open_their_graph(chromium, example, tmp_path):
    name = example["problems"][0]["placements"][1]["name"]
    result = example["comparison"]["results"][0]
    column = result["placers"].index(name)
    shown(chromium, example, tmp_path)
    chromium.run(
        "document.querySelectorAll('.block tbody')[arguments[0]]"
        ".querySelectorAll('td')[arguments[1]].querySelector('button').click()",
        chromium.run(
            "return [...document.querySelectorAll('caption')]"
            ".findIndex((c) => c.textContent.startsWith('Results by graph'))"
        ),
        column,
    )
    pressed = "return document.querySelector('.placements [aria-pressed=true] bdi').textContent"
    assert chromium.run(pressed) == name


def test_heads_sort_a_comparison(chromium, example, tmp_path):
    result = example["comparison"]["results"][0]
    shown(chromium, example, tmp_path)
    script = """
        const table = [...document.querySelectorAll('table')]
            .find((t) => t.caption && t.caption.textContent.startsWith('throughput'));
        table.querySelectorAll('th button')[1].click();
        return [...table.querySelectorAll('tbody th')].map((cell) => cell.textContent);
    """
    means = {
        placer: sum(value for value in values if value is not None)
        for placer, values in zip(result["placers"], result["values"], strict=True)
    }
    best_first = sorted(means, key=lambda placer: -means[placer])
    assert chromium.run(script) == best_first
    assert chromium.run(script) == best_first[::-1]


NAMES = (
    "metis",
    "fuser",
    "a-long-alias-typed-without-thinking-of-its-width",
    "anneal:k=2",
    "pilot",
)


def compared(graphs, names):
    """Placers with long and short names, some alike in value and time, at two rates."""
    judge = OBJECTIVES["throughput"]
    collected, by_graph = ObjectiveResults(judge), GraphResults()
    for g in range(graphs):
        records = [
            Record(f"{g}/{rate}", f"b3x4-v2-{g:03d}", rate, name, "", (g % 7 + i // 2) / 12, None,
                   10.0 ** (i // 2), (0, 1))
            for rate in (1e4, 2e4)
            for i, name in enumerate(names)
        ]  # fmt: skip
        collected.add(records), by_graph.add(records)
    aliases = {names[2]: "pilot:weights=runs/best.safetensors"}
    return Comparison((collected,), names[0], {}, aliases, by_graph, {names[-1]: graphs})


@pytest.mark.parametrize(
    ("width", "graphs", "names"),
    [
        (375, 5, NAMES),
        (1400, 50, NAMES),
        pytest.param(2560, 500, NAMES, marks=pytest.mark.slow),
        (1400, 5, [f"p{i}" for i in range(40)]),
    ],
)
def test_a_comparison_fits_any_window(chromium, tmp_path, width, graphs, names):
    """No label lies on another or outside its chart, and nothing is wider than its place."""
    chromium.size(width, 900, mobile=width < 500, dark=width == 2560)
    shown(chromium, document_of(compared(graphs, names).report()), tmp_path)
    faults = chromium.run("""
        const faults = [], near = 1;
        const meet = (a, b) => a.left < b.right - near && b.left < a.right - near
            && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
        const inside = (a, b) => a.left > b.left - near && a.right < b.right + near
            && a.top > b.top - near && a.bottom < b.bottom + near;
        for (const svg of document.querySelectorAll('.chart svg')) {
            const texts = [...svg.querySelectorAll('text')];
            const boxes = texts.map((text) => text.getBoundingClientRect());
            boxes.forEach((box, i) => {
                const meets = boxes.findIndex((other, j) => j < i && meet(box, other));
                if (meets >= 0) faults.push([texts[i].textContent, texts[meets].textContent]);
                if (!inside(box, svg.getBoundingClientRect())) faults.push(texts[i].textContent);
            });
        }
        for (const part of document.querySelectorAll('.scroll, .chart, .scroll th, .scroll td'))
            if (part.scrollWidth > part.clientWidth + near) faults.push(part.textContent);
        if (document.documentElement.scrollWidth > innerWidth) faults.push('the window');
        return faults;
    """)
    chromium.size(1280, 900)
    assert faults == []
