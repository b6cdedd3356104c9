import gzip
import json
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "assets"
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICK = {"plan": ("--evaluations", "500"), "compare": ("--evaluations", "500", "--jobs", "1")}
"""Options that make commands quicker than a reader's."""


def test_the_demo_shows_a_graph_on_which_balance_and_cut_are_not_enough(run):
    """Three placements, of which only the last one carries the full rate, with their picture."""
    answer = run("demo")
    assert answer.status == 0
    shares = re.findall(r"^ ?(round-robin|metis|auto) +([\d.]+) %", answer.out, re.MULTILINE)
    assert [name for name, _ in shares] == ["round-robin", "metis", "auto"]
    values = [float(share) for _, share in shares]
    assert values[0] < values[1] < 70
    assert values[2] == 100
    folder = Path("streamplace-demo")
    assert {file.name for file in folder.iterdir()} == {
        "graph.json", "round-robin.json", "metis.json", "auto.json", "placements.svg",
        "report.html", "tasks.json", "graphs.jsonl.gz", "offers.toml",
    }  # fmt: skip
    assert (folder / "placements.svg").read_text().count("b1s2") >= 3


@pytest.mark.slow
def test_what_the_demo_suggests_works(run, monkeypatch):
    """Every command line at its end, in a folder of another name."""
    out = run("demo", "-o", "my files").out
    monkeypatch.chdir("my files")
    lines = [line.strip() for line in out.splitlines() if line.startswith("  streamplace ")]
    assert len(lines) == 5
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words != ["--help"]:
            assert run(*words, *QUICK.get(words[0], ())).status == 0, line


def test_the_lines_of_the_readme_run_after_a_demo_that_answers_in_json(run, monkeypatch):
    """All of "Use it" but the training, which takes long, and Flink, which must run."""
    block = re.search(r"## Use it\n.*?```console\n(.*?)```", README, re.DOTALL)
    demo, *lines = block[1].splitlines()
    assert demo == "streamplace demo && cd streamplace-demo"
    document = json.loads(run("demo", "--json").out)
    assert document["placements"][2]["value"] == 1
    assert "is the limit" in document["placements"][0]["verdict"]
    monkeypatch.chdir("streamplace-demo")
    assert len(lines) == 9
    for line in lines:
        words = shlex.split(line, comments=True)
        assert words[0] == "streamplace"
        few = QUICK.get(words[1], ())
        if words[1] != "train":
            answer = run(*words[1:], *few)
            assert answer.status == 0, f"{line}: {answer.err}"
    assert Path("out/report.html").is_file()
    assert gzip.decompress(Path("graphs.jsonl.gz").read_bytes()).count(b"\n") == 20


README_LINES = """\
generate branched --branches 3 --depth 3 --devices 3 --copies 1 --seed 12 -o graph.json
place graph.json --placer metis -o metis.json
place graph.json -o auto.json
draw graph.json metis.json auto.json -o case.svg
"""
TUTORIAL_LINES = """\
generate branched --branches 3 --depth 4 --devices 3 --copies 1 --seed 7 -o graph.json
place graph.json --placer round-robin -o first.json
place graph.json --placer metis-oracle -o placement.json
draw graph.json first.json placement.json -o drawing.svg
"""


@pytest.mark.parametrize("lines", [README_LINES, TUTORIAL_LINES], ids=["README", "tutorial"])
def test_pictures_are_drawn_by_these_commands(run, lines):
    for line in lines.splitlines():
        assert run(*line.split()).status == 0, line
    for picture in Path().glob("*.svg"):
        assert picture.read_bytes() == (ASSETS / picture).read_bytes()
