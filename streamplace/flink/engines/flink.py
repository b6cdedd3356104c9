"""Export for Flink: settings of TaskManagers, pins for jars, and the hook of PyFlink programs."""

from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from string import Template

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.engines.text import comment, group_notes, python_table
from streamplace.flink.constants import INDEXES
from streamplace.flink.layout import Layout
from streamplace.flink.pin.pinning import (
    Pinning,
    SpreadLimits,
    cluster_settings,
    layers_offered,
    pinning,
)
from streamplace.flink.program.jars import placed_java
from streamplace.io.files import json_text

LATER = {
    False: "Later placements of whole operators need no restart. To place subtasks one by one, "
    "replace this by\nthe output of streamplace flink config --subtasks.",
    True: "Later placements need no restart, not even those that place subtasks one by one.",
}
"""Comment on later placements, by whether the placement is of subtasks."""
MAX_PARALLELISM = "pipeline.max-parallelism"
CHECK = "Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json"


@export("flink", all_devices=True)
def as_flink(deployment: Deployment) -> dict[str, str]:
    """Placement, TaskManager settings, and snippets for jars and for PyFlink programs."""
    devices = deployment.problem.cluster.devices.name
    limits = SpreadLimits.untouched(devices, INDEXES)
    pins = pinning(_layout(deployment), limits)
    operators = deployment.problem.graph.operators
    head = [
        f"{deployment.title}.",
        *text("how.txt").splitlines(),
        *_key_groups(operators.key_groups),
        *group_notes(deployment),
        CHECK,
    ]
    key_groups = {"max_parallelism": operators.key_groups} if operators.key_groups else {}
    placement = {
        "about": head,
        "parallelism": operators.parallel,
        **key_groups,
        "assignment": deployment.placement.as_dict(),
    }
    layers = 0
    if deployment.is_split:  # the layers of this placement, or the usual number if it is larger
        used = [j for free in limits.layers.values() for j in range(INDEXES) if j not in free]
        layers = max(layers_offered(len(devices)), 1 + max(used, default=0))
    settings = cluster_settings(devices, layers=layers)
    how = filled("settings.txt", later=LATER[deployment.is_split]).splitlines()
    notes = comment([head[0], *how])
    return {
        "placement.json": json_text(placement),
        **placed_java(pins),
        "placed.py": placed_py(pins),
        **{f"config/{name}": notes + lines for name, lines in settings.items()},
    }


def placed_py(pins: Pinning) -> str:
    """Python module that pins a PyFlink job; it depends on PyFlink only."""
    hook = files("streamplace.flink").joinpath("pin", "hook.py").read_text("utf-8")
    _, _, code = hook.partition('"""\n\n')
    tables: dict[str, Mapping[str, object]] = {
        "OPERATORS": pins.operators,
        "PARALLELISM": pins.parallelism,
        "GROUPS": pins.groups,
        "SPREAD": pins.spread,
        "MANAGED": pins.managed,
    }
    parts = [f"{name} = {python_table(table)}\n" for name, table in tables.items()]
    return filled("placed.py.txt", code=code, tables="".join(parts))


def filled(file: str, **values: str) -> str:
    """Text of a file of this package, with values in place of its ``${names}``."""
    return Template(text(file)).substitute(values)


def text(file: str) -> str:
    """Text of a file of this package."""
    return files(__package__).joinpath(file).read_text("utf-8")


def _layout(deployment: Deployment) -> Layout:
    """Device of each subtask of a deployment."""
    operators, placement = deployment.problem.graph.operators, deployment.placement
    if deployment.is_split:
        subtasks = {name: deployment.expansion.subtasks(name) for name in operators.name}
    else:
        numbers = operators.parallelism.tolist()
        subtasks = {name: (name,) * n for name, n in zip(operators.name, numbers, strict=True)}
    devices = {name: [placement[s] for s in entries] for name, entries in subtasks.items()}
    return Layout(devices).by_operator()


def usual_max_parallelism(groups: Mapping[str, int]) -> int:
    """Most frequent maximum parallelism of operators; the largest one if there is a tie.

    >>> usual_max_parallelism({"src": 8, "map": 128, "join": 128})
    128
    """
    counts = Counter(groups.values())
    return max(counts, key=lambda number: (counts[number], number))


def _key_groups(groups: Mapping[str, int]) -> list[str]:
    """Instructions to set the maximum parallelism that the placement was computed for."""
    if not groups:
        return []
    usual = usual_max_parallelism(groups)
    lines = [
        f"The placement is for a maximum parallelism of {usual}. A job with state keeps its own.",
        f"For a new job, set it: -D {MAX_PARALLELISM}={usual}",
    ]
    others = [f"{name}: {number}" for name, number in groups.items() if number != usual]
    if others:
        lines.append(f"and by setMaxParallelism in the program, {', '.join(others)}")
    return lines
