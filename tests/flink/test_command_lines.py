"""Command lines of Flink: outputs, which spare the files of others, and mistakes."""

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("graph", "placement")
EXPORT = ("export", "placement.json", "--to")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("move --settle", "--settle --settings"),
        ("move --placement placement.json --tries 2", "--tries --placement"),
        ("advise --rate fast --offers offers.toml", "'fast'"),
        ("advise --rate 2x --offers offers.toml --cluster two.toml", "--offers --cluster"),
    ],
)
def test_a_mistake_is_named(refusal, line, words):
    Path("two.toml").write_text("devices = [{name = 'd0'}, {name = 'd1'}]\n")
    Path("offers.toml").write_text("offers = [{name = 'small', price = 0.1}]\n")
    message = refusal("flink", *line.split())
    assert [word for word in words.split() if word not in message] == []


def test_the_bare_group_prints_its_help(run):
    assert run("flink") == run("flink", "--help")


def test_an_export_does_not_overwrite_its_placement(refusal):
    assert "overwrite" in refusal(*EXPORT, "flink", "-o", ".")


@pytest.mark.parametrize(
    "line",
    [
        "flink jar job.jar --placement placement.json -o mine.jar",
        "flink config --cluster machines.toml -o folder",
    ],
)
def test_files_of_others_are_spared(refusal, line):
    Path("folder").mkdir()
    Path("folder", "d0.yaml").write_text("title = 'mine'\n")
    Path("mine.jar").write_text("no jar")
    Path("job.jar").write_text("no jar")
    Path("machines.toml").write_text("devices = [{name = 'd0'}]\n")
    assert "streamplace did not write; name another file" in refusal(*line.split())
    assert Path("mine.jar").read_text() == "no jar"


@pytest.mark.parametrize(
    "line",
    [
        "export placement.json --to flink -o flink",
        "export placement.json --to flink-kubernetes -o flink-kubernetes",
        "flink config --cluster machines.toml -o config",
    ],
)
def test_files_of_streamplace_are_written_again(run, line):
    Path("machines.toml").write_text("devices = [{name = 'd0'}]\n")
    for _ in range(2):
        answer = run(*line.split())
        assert answer.status == 0, answer.err


@pytest.mark.parametrize("form", ["flink", "flink-kubernetes"])
def test_spread_subtasks_need_all_devices(run, refusal, form):
    """An idle TaskManager would take what it was not told to refuse."""
    graph = {
        "name": "g",
        "operators": [{"name": "a", "rate": 1}, {"name": "b", "parallelism": 2}],
        "streams": [{"from": "a", "to": "b"}],
    }
    Path("graph.json").write_text(json.dumps(graph))
    Path("placement.json").write_text('{"assignment": {"a": "d0", "b#0": "d0", "b#1": "d1"}}')
    command = [*EXPORT, form, "-o", "out"]
    assert "--cluster or --devices" in refusal(*command)
    assert run(*command, "--devices", "3").status == 0


def test_constraints_and_clusters_are_carried(run):
    """Idle devices get their configuration too, groups their note."""
    Path("rules.toml").write_text('colocate = [["b0s1", "b0s2"]]\n')
    words = ["--constraints", "rules.toml", "--devices", "3", "--json"]
    files = json.loads(run(*EXPORT, "flink", *words).out)["files"]
    assert "config/d2.yaml" in files
    assert any("Must share a device: b0s1, b0s2" in text for text in files.values())


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("flink verify --placement placement.json", "httpx"),
        ("flink profile --rest kubernetes:shop/count", "lightkube"),
    ],
)
def test_missing_packages_are_named_with_their_extra(refusal, monkeypatch, line, package):
    monkeypatch.setitem(sys.modules, package, None)
    install = "install it with: pip install 'streamplace[flink]'"
    assert refusal(*line.split()) == f"error: {package} is not installed; {install}\n"
