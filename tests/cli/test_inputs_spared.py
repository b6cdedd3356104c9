"""No command writes over what it reads."""

import os
from pathlib import Path

import pytest

LINES = """\
describe graph.json -o graph.json
compare folder --placers round-robin -o folder
export placement.json --to json -o graph.json
export placement.json --to json --constraints rules.toml -o rules.toml
place graph.json --settings move.toml -o placement.json
simulate graph.json placement.json --settings from.toml -o from.toml
place graph.json -o hard-link.json
place graph.json -o soft-link.json
plan folder/graph.json --rate 5 --offers offers.toml -o folder
simulate graph.json placement.json -o folder/../placement.json
""".splitlines()
"""One for each way in which a file is read, or is known by another name."""


@pytest.mark.parametrize("line", LINES)
def test_an_output_is_no_input(refusal, graph, placement, line):
    Path("folder").mkdir()
    Path("folder/graph.json").write_bytes(Path(graph).read_bytes())
    Path("from.toml").write_text("from = 'placement.json'\n")
    Path("move.toml").write_text("from = 'placement.json'\npasses = 5\n")
    Path("offers.toml").write_text("offers = [{name = 'small', price = 0.1}]\n")
    Path("rules.toml").write_text("pin = {}\n")
    os.link(graph, "hard-link.json")
    Path("soft-link.json").symlink_to(graph)
    assert "overwrite" in refusal(*line.split())


FOREIGN = {
    "mine.json": '{"notes": [1, 2]}',
    "mine.jsonl.gz": "no gzip",
    "mine.svg": "<svg/>",
    "mine.html": "<p>mine</p>",
    "mine.toml": "title = 'mine'",
    "mine.csv": "day,sum\n1,2\n",
    "mine.yaml": "kind: Secret\n",
    "mine.dot": "digraph {}",
}
"""Files that something else wrote."""


@pytest.mark.parametrize(
    "line",
    [
        "place graph.json -o mine.json",
        "place graph.json -o mine.svg",
        "place graph.json -o mine.html",
        "place graph.json -o other.json",
        "simulate graph.json placement.json -o mine.json",
        "simulate graph.json placement.json -o other.json",
        "generate branched -o mine.jsonl.gz",
        "export placement.json --to json -o mine.json",
        "export placement.json --to csv -o mine.csv",
        "export placement.json --to csv -o table",
        "export placement.json --to kubernetes -o mine.yaml",
        "export placement.json --to dot -o mine.dot",
        "export placement.json --to ray -o ray",
        "plan graph.json --rate 5 --offers offers.toml -o folder",
        "compare graph.json --placers round-robin -o compared",
        "compare graph.json --placers round-robin -o drawn",
        "compare graph.json --placers round-robin --objective devices --objective latency -o drawn",
        "demo -o folder",
        "train dream --data graph.json --out folder",
    ],
)
def test_what_others_wrote_is_spared(refusal, graph, placement, line):
    """A graph is no placement, and other files have no fields or mark of ours."""
    Path("folder").mkdir()
    Path("offers.toml").write_text("offers = [{name = 'small', price = 0.1}]\n")
    for name, text in FOREIGN.items():
        Path(name).write_text(text)
    Path("other.json").write_bytes(Path(graph).read_bytes())
    for name in ("cluster.toml", "offers.toml", "history.jsonl"):
        Path("folder", name).write_text("title = 'mine'\n")
    for name in (
        "compared/table.tex",
        "drawn/distribution.png",
        "drawn/a-distribution.png",
        "ray/placement.py",
        "table",
    ):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("mine")
    assert "streamplace did not write; name another file" in refusal(*line.split())
    assert {name: Path(name).read_text() for name in FOREIGN} == FOREIGN


def test_what_streamplace_wrote_is_written_again(run, graph, placement):
    for line in (
        "place graph.json --placer round-robin -o a.json",
        "place graph.json --placer round-robin -o a.svg",
        "place graph.json --placer round-robin -o a.html",
        "place graph.json --placer round-robin -o a.jsonl",
        "simulate graph.json placement.json -o b.json",
        "simulate graph.json placement.json --objective makespan -o b.trace.json",
        "simulate graph.json placement.json --objective makespan -o c.svg",
        "simulate graph.json placement.json --objective makespan -o c.png",
        "simulate graph.json placement.json --objective makespan -o c.pdf",
        "export placement.json --to json -o d.json",
        "export placement.json --to csv -o d.csv",
        "export placement.json --to csv -o table",
        "export placement.json --to kubernetes -o d.yaml",
        "export placement.json --to dot -o d.dot",
        "export placement.json --to graphml -o d.graphml",
        "export placement.json --to ray -o ray",
        "compare graph.json --placers round-robin -o compared",
        "compare graph.json --placers round-robin --objective devices --objective latency -o both",
        "demo -o demo",
    ):
        for _ in range(2):
            answer = run(*line.split())
            assert answer.status == 0, (line, answer.err)


def test_a_pipe_may_be_both(run, graph):
    """A terminal or a device is read and written as one likes."""
    assert run("place", graph, "--constraints", "/dev/null", "-o", "/dev/null").status == 0


def test_every_file_that_is_written_is_named(run, graph, placement):
    Path("offers.toml").write_text(
        '[[offers]]\nname = "small"\nmips = 2500\ncores = 64\nprice = 1\n'
    )
    plan = ["plan", graph, "--rate", "1", "--offers", "offers.toml", "--evaluations", "9"]
    written = {
        "placed.json": ["place", graph, "--placer", "round-robin"],
        "explained.json": ["simulate", graph, placement],
        "plan": plan,
        "plan.html": plan,
    }
    for name, words in written.items():
        for more in ([], ["--json"]):
            answer = run(*words, *more, "-o", name)
            assert answer.status == 0, answer.err
            assert f" → {name}\n" in answer.err
        assert Path(name).exists()


def test_a_dash_is_a_standard_stream(run, graph):
    """It is read where a file is read, and written where one is written."""
    usual = os.dup(0)
    try:
        with Path(graph).open() as file:
            os.dup2(file.fileno(), 0)
            answer = run("place", "-", "--placer", "round-robin", "-o", "p.json")
    finally:
        os.dup2(usual, 0)
        os.close(usual)
    assert (answer.status, Path("p.json").exists()) == (0, True)
