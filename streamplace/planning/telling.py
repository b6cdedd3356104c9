"""Plans in words and tables, and as files that other commands read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamplace.io.clusters import cluster_to_tables
from streamplace.io.files import make_folder, write_texts
from streamplace.io.graphs import graph_to_dict
from streamplace.io.toml import text_of
from streamplace.model.report import Bar, Report, Sheet, percent
from streamplace.planning.result import PlanLimit, PlanResult, PlanStep

FILES = ("plan.json", "graph.json", "cluster.toml", "placement.json")
"""Files of a plan."""
WORDS = {
    "cpu": "the CPU of {machine}, mostly by {operator}",
    "core": "one core of {machine}, by a subtask of {operator}",
    "memory": "the memory of {machine}, mostly by {operator}",
    "egress": "the outgoing network of {machine}, mostly by {operator}",
    "ingress": "the incoming network of {machine}, mostly by {operator}",
    "slots": "the slots of {machine}",
}


def report_of(result: PlanResult) -> Report:
    """What a person is told of a plan."""
    machines = tuple(
        (name, str(count), _contents(result, name)) for name, count in result.machines.items()
    )
    free = tuple((name, Bar(1 - share), percent(1 - share)) for name, share in result.free.items())
    number = sum(result.machines.values())
    parts: list[str | Sheet] = [
        Sheet(("machines", "number", "subtasks on them"), machines),
        Sheet(("resource", "", "in use"), free),
        f"{result.rate:g} tuples/s cost {result.cost:g} per hour on "
        f"{number} machine{'s' if number > 1 else ''}. {_proof(result)}",
        f"The placement carries {result.carries:.6g} tuples/s. {_limit(result.limit)}",
    ]
    for word, step in (("less", result.cheaper), ("more", result.dearer)):
        if step is not None:
            parts.append(_step(word, step))
    return Report(tuple(parts))


def frontier_report(results: Sequence[PlanResult]) -> Report:
    """Cost against rate."""
    rows = tuple(
        (
            f"{result.rate:g}",
            f"{result.cost:g}",
            f"{float(result.bound):g}",
            percent(result.gap),
            _machines(result.machines),
        )
        for result in results
    )
    head = ("tuples/s", "cost per hour", "bound", "above the bound", "machines")
    return Report((Sheet(head, rows),))


def files_of(result: PlanResult) -> dict[str, str]:
    """Files of a plan by name: plan, graph, cluster and placement."""
    parallel = {name: p for name, p in result.parallelism.items() if p > 1}
    placement = {
        "graph": result.graph.name,
        "parallelism": parallel,
        "assignment": result.placement.as_dict(),
    }
    texts = (
        _json(result.to_json()),
        _json(graph_to_dict(result.graph)),
        text_of(cluster_to_tables(result.cluster)),
        _json(placement),
    )
    return dict(zip(FILES, texts, strict=True))


def write_plan(result: PlanResult, folder: Path) -> None:
    """Write the files of a plan into a folder, all of them or none."""
    make_folder(folder)
    write_texts({folder / name: text for name, text in files_of(result).items()})


def _json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _contents(result: PlanResult, offer: str) -> str:
    """Subtasks of each operator on all machines of a type."""
    names = result.cluster.devices.name
    machines = {name for name in names if name.rpartition("-")[0] == offer}
    texts = []
    for operator, places in result.subtasks().items():
        number = sum(count for machine, count in places.items() if machine in machines)
        if number:
            texts.append(f"{operator} {number}" if number > 1 else operator)
    return ", ".join(texts)


def _proof(result: PlanResult) -> str:
    if result.is_cheapest:
        return "No plan costs less."
    return (
        f"No plan costs less than {float(result.bound):g}; this one is at most "
        f"{percent(result.gap)} above the cheapest."
    )


def _limit(limit: PlanLimit) -> str:
    where = WORDS[limit.resource].format(machine=limit.machine, operator=limit.operator)
    return f"What limits is {where} ({percent(limit.use)} in use)."


def _step(word: str, step: PlanStep) -> str:
    return (
        f"With one machine {word} ({_machines(step.machines)}; {step.cost:g} per hour), a "
        f"placement for {step.rate:.6g} tuples/s was found."
    )


def _machines(machines: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in machines.items())
