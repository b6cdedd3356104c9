"""--scale and --set of place, simulate and plan."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamplace import read_graph, what_if, write_graph

CHANGES = ["--scale", "b0s1=2", "--set", "src.rate=3k"]
ASKED = {"scale": {"b0s1": 2}, "change": {"src.rate": "3k"}}
COMMANDS = {
    "place": ["graph.json", "--placer", "metis"],
    "simulate": ["graph.json", "placement.json"],
    "plan": ["graph.json", "--rate", "9k", "--offers", "offers.toml", "--evaluations", "9"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_what_if_is_as_good_as_an_edited_file(
    run: Callable, graph: str, placement: str, command: str
) -> None:
    Path("offers.toml").write_text('[[offers]]\nname = "s"\nmips = 25e3\ncores = 9\nprice = 1\n')
    plain = run(command, *COMMANDS[command], "--json").out
    before = Path(graph).read_bytes()
    asked = run(command, *COMMANDS[command], *CHANGES, "--json")
    assert Path(graph).read_bytes() == before
    write_graph(what_if(read_graph(graph), **ASKED), graph)
    edited = run(command, *COMMANDS[command], "--json")
    assert timeless(asked.out) == timeless(edited.out) != timeless(plain)


@pytest.mark.parametrize("option", ["--scale", "--set"])
def test_what_is_changed_twice_is_refused(refusal: Callable, graph: str, option: str) -> None:
    changes = (option, "src.rate=2", option, "src.rate=3")
    assert f"{option} is given twice for 'src.rate'; drop one" in refusal("place", graph, *changes)


def timeless(text: str) -> dict:
    return {key: value for key, value in json.loads(text).items() if key != "seconds"}
