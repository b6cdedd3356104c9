"""The page on JSON output names every field that commands print."""

import json
import re
from pathlib import Path

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


def unexplained(*texts):
    """Fields of documents that the page does not name."""
    printed = {name for text in texts for name in fields(json.loads(text))}
    return printed - set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8")))


def test_fields_of_a_stream_graph_are_explained(run, graph, placement):
    placed = run("place", graph, "--placer", "round-robin", "--json")
    simulated = run("simulate", graph, placement, "--engine", "--json")
    front = run("place", graph, "--against", "latency", "--evaluations", "100", "--json")
    assert not unexplained(front.out)
    assert not unexplained(placed.out, simulated.out)


def test_the_fields_of_what_survives_are_explained(run, graph, placement):
    lost = run("simulate", graph, placement, "--objective", "survives", "--json")
    assert not unexplained(lost.out)


def test_the_fields_of_a_task_graph_are_explained(run, tasks):
    placed = run("place", tasks, "--placer", "heft", "--json")
    assert not unexplained(placed.out, run("simulate", tasks, "present.json", "--json").out)


def test_the_fields_of_plans_and_comparisons_are_explained(run, graph):
    Path("offers.toml").write_text('offers = [{name = "one", price = 1, cores = 8}]')
    Path("day.csv").write_text("time,rate\n0,1000\n3600,2000\n7200,1500\n")
    few = ("--offers", "offers.toml", "--evaluations", "200", "--json")
    plan = run("plan", graph, "--rate", "1000", *few)
    hours = run("plan", graph, "--trace", "day.csv", *few)
    schedule = run("plan", graph, "--trace", "day.csv", "--schedule", "--policy", "all", *few)
    compared = run("compare", graph, "--placers", "metis,exact", "--jobs", "1", "--json")
    assert not unexplained(plan.out, hours.out, schedule.out, compared.out)
