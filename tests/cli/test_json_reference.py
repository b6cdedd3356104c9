"""The page on JSON output names every field that commands print."""

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/reference/json.md"
BY_NAME = {
    *("assignment", "busy", "chain", "moved", "parallelism", "parts"),
    *("priority", "queues", "schedule", "sources", "utilisation"),
    *("bounds", "machines", "free", "reserves"),
    *("aliases", "chosen_by", "devices_used", "measures", "paired", "placers", "rates"),
    "trained_on",
}
"""Fields that may be tables whose keys are names."""


def fields(document):
    """Names of all fields, without names of operators, streams and devices."""
    if isinstance(document, list):
        for part in document:
            yield from fields(part)
    elif isinstance(document, dict):
        for name, value in document.items():
            yield name
            if name == "subtasks":  # operator → machine → number
                continue
            is_table = name in BY_NAME and isinstance(value, dict)
            yield from fields(list(value.values()) if is_table else value)


FEW = "--offers offers.toml --evaluations 200"


@pytest.mark.parametrize(
    "line",
    [
        "place graph.json --placer round-robin",
        "place graph.json --against latency --evaluations 100",
        "simulate graph.json placement.json --engine",
        "simulate graph.json placement.json --objective survives",
        "place tasks.json --placer heft",
        "simulate tasks.json present.json",
        f"plan graph.json --rate 1000 {FEW}",
        f"plan graph.json --trace day.csv {FEW}",
        f"plan graph.json --trace day.csv --schedule --policy all {FEW}",
        "compare graph.json --placers metis,exact --jobs 1",
    ],
)
@pytest.mark.usefixtures("graph", "placement", "tasks")
def test_every_field_is_explained(run, line):
    Path("offers.toml").write_text('offers = [{name = "one", price = 1, cores = 8}]')
    Path("day.csv").write_text("time,rate\n0,1000\n3600,2000\n7200,1500\n")
    printed = {*fields(json.loads(run(*line.split(), "--json").out))}
    assert printed - {*re.findall(r"`(\w+)`", PAGE.read_text("utf-8"))} == set()
