import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest


def document_of(run: Callable, *words: str) -> Any:
    """What a command answers in JSON."""
    return json.loads(run(*words, "--json").out)


def write_pair(operator: dict[str, Any], **fields: Any) -> str:
    """Write a graph of a source and an operator behind it; returns its file."""
    source = {"name": "src", "ipt": 1, "rate": 10_000}
    streams = [{"from": "src", "to": operator["name"]}]
    Path("g.json").write_text(
        json.dumps({"operators": [source, operator], "streams": streams, **fields})
    )
    return "g.json"


@pytest.mark.parametrize(
    ("line", "results"),
    [
        ("place pipe --placer round-robin -o out.jsonl", "out.jsonl"),
        ("compare pipe.jsonl --placers metis -o out", "out/results.jsonl"),
    ],
)
def test_a_data_set_may_come_from_a_pipe(
    run: Callable, graph: str, line: str, results: str
) -> None:
    """Which can be read only once."""
    words, content = line.split(), Path(graph).read_bytes()
    os.mkfifo(words[1])
    writer = Thread(target=lambda: Path(words[1]).write_bytes(content), daemon=True)
    writer.start()
    answer = run(*words)
    writer.join(10)
    assert answer.status == 0, answer.err
    assert len(Path(results).read_text().splitlines()) == 1


def test_what_names_do_not_say_is_printed(run: Callable) -> None:
    graph = write_pair({"name": "Calc", "about": "Calc(where=[price > 9])"})
    assert "Calc(where=[price > 9])" in run("place", graph, "-o", "p.json", "-v").out
    assert "Calc(where=[price > 9])" in run("simulate", graph, "p.json", "-v").out
    assert "Calc(" not in run("simulate", graph, "p.json").out


def test_subtasks_are_placed_one_by_one_and_simulated(run: Callable, refusal: Callable) -> None:
    """What no device carries alone is spread, under the names of the subtasks; none may miss."""
    graph = write_pair({"name": "join", "ipt": 1_000_000, "parallelism": 4})
    dealt = ("place", graph, "--placer", "round-robin")
    document = document_of(run, *dealt, "--subtasks")
    assert list(document["assignment"]) == ["src", "join#0", "join#1", "join#2", "join#3"]
    assert len(set(document["assignment"].values())) == 5
    assert document["relative_throughput"] > document_of(run, *dealt)["relative_throughput"]
    few = ("--devices", "3")
    placed = document_of(run, "place", graph, *few, "--subtasks", "-o", "p.json")
    simulated = document_of(run, "simulate", graph, "p.json", *few)
    assert simulated["relative_throughput"] == placed["relative_throughput"]
    written = json.loads(Path("p.json").read_text())
    del written["assignment"]["join#2"]
    Path("p.json").write_text(json.dumps(written))
    assert "'join#2'" in refusal("simulate", graph, "p.json", *few)


def test_verbose_tells_on_stderr_what_happens_on_the_way(run: Callable, graph: str) -> None:
    """The members of the portfolio with their values; stdout stays one JSON document."""
    answer = run("place", graph, "-v", "--json")
    assert "10 operators, 12 streams, 5 devices" in answer.err
    assert "metis" in answer.err
    assert json.loads(answer.out)["placer"] == "auto"
    assert "metis" not in run("place", graph, "--json").err
