"""Export for Flink: settings of TaskManagers, pins for jars, and the hook of PyFlink programs."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.config import (
    MAX_PARALLELISM,
    cluster_settings,
    usual_max_parallelism,
)
from streamplace.engines.flink.pin.fitting import check_cluster, fitted
from streamplace.engines.flink.pin.hook import CPU_CORES, HEAP_MB, PlacedEnvironment
from streamplace.engines.flink.pin.names import GROUPS, layers_offered
from streamplace.engines.flink.pin.pinning import Pinning, pinning
from streamplace.engines.flink.pin.spread import SpreadLimits
from streamplace.engines.flink.program.jars import placed_java
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.registry import export
from streamplace.engines.text import comment, python_table

SETTINGS = """\
Use: append this to conf/config.yaml of the TaskManager that is this device, once, and start it
again. The JobManager must not run the adaptive scheduler (jobmanager.scheduler: default).
Check: streamplace flink cluster --rest http://JOBMANAGER:8081 lists the device.
"""
WHOLE = """\
Later placements of whole operators need no restart. To place subtasks one by one, replace this by
what streamplace flink config --subtasks writes.
"""
SPREAD = """\
Later placements need no restart, not even those that place subtasks one by one.
"""
HOW = """\
Use: append config/<device>.yaml to conf/config.yaml of the TaskManager that is this device, once,
and start it again. The JobManager must not run the adaptive scheduler (jobmanager.scheduler:
default). Then, for a job in a jar, unchanged:
  streamplace flink apply job.jar --rest http://JOBMANAGER:8081 --placement placement.json
or compile Placed.java and PlacedIds.java into it, or add placed.py to a PyFlink program; both say
how in their first lines. There MANAGED_MB is the managed memory of your TaskManagers, where apply
asks them. Of jobs that spread operators over devices these two serve one at a time on a cluster:
they use group indexes from 0 on, where apply takes free ones. groups.json holds the same slot
sharing groups for tools of your own.
"""
MEMORY = """\
Managed memory: each slot an equal share of what its TaskManager has.
Heap and CPU of a slot are as small as Flink allows, since it only counts them: all slots of a
TaskManager share its whole heap and all of its cores. Size the heap for the operators placed there.
"""
CHECK = "Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json"


@export("flink", all_devices=True)
def as_flink(deployment: Deployment) -> dict[str, str]:
    """TaskManager settings, slot sharing groups, and snippets for jars and for PyFlink programs."""
    devices = deployment.problem.cluster.devices.name
    limits = SpreadLimits.untouched(devices, GROUPS)
    answer = pinning(_layout(deployment), limits)
    operators = deployment.problem.graph.operators
    head = [f"{deployment.title}.", *HOW.splitlines(), *_key_groups(operators.key_groups), CHECK]
    placement = {
        "about": head,
        "parallelism": operators.parallel,
        **_max_parallelism(deployment),
        "assignment": deployment.placement.as_dict(),
    }
    layers = max(layers_offered(len(devices)), limits.layers_taken) if deployment.is_split else 0
    settings = cluster_settings(devices, layers=layers)
    later = SPREAD if deployment.is_split else WHOLE
    notes = comment([head[0], *SETTINGS.splitlines(), *later.splitlines()])
    return {
        "placement.json": _json(placement),
        "groups.json": _json(_groups(deployment, answer)),
        **placed_java(answer),
        "placed.py": placed_py(answer),
        **{f"config/{name}": notes + text for name, text in settings.items()},
    }


def placed_py(answer: Pinning) -> str:
    """Python module that pins a PyFlink job; it depends on PyFlink only."""
    hook = files(__package__).joinpath("hook.py").read_text("utf-8")
    _, _, code = hook.partition('"""\n\n')
    tables: dict[str, Mapping[str, object]] = {
        "OPERATORS": answer.operators,
        "PARALLELISM": answer.parallelism,
        "GROUPS": answer.groups,
        "SPREAD": answer.spread,
        "MANAGED": {},
    }
    parts = [f"{name} = {python_table(table)}\n" for name, table in tables.items()]
    return f"{_PYTHON_HEAD}\n{code}\n\n{''.join(parts)}\n\n{_PYTHON_TAIL}"


def _layout(deployment: Deployment) -> Layout:
    """Device of each subtask of a deployment."""
    operators, placement = deployment.problem.graph.operators, deployment.placement
    if deployment.is_split:
        own = {name: deployment.expansion.subtasks(name) for name in operators.name}
    else:
        numbers = operators.parallelism.tolist()
        own = {name: (name,) * n for name, n in zip(operators.name, numbers, strict=True)}
    return Layout({name: [placement[s] for s in own[name]] for name in own}).by_operator()


def _groups(deployment: Deployment, answer: Pinning) -> dict[str, object]:
    return {
        "about": [CHECK, *MEMORY.splitlines()],
        "slot_sharing_groups": [
            {
                "name": group,
                "operators": [v for v, g in answer.operators.items() if g == group],
                "cpu_cores_per_slot": CPU_CORES,
                "task_heap_mb_per_slot": HEAP_MB,
                "external_resources_per_slot": demands,
            }
            for group, demands in answer.groups.items()
        ],
        "parallelism": answer.parallelism,
        **_max_parallelism(deployment),
        "colocate": deployment.colocated,
        "exlocate": deployment.exlocated,
        "tags": {e.device: e.tags for e in deployment.elements if e.tags},
    }


def _max_parallelism(deployment: Deployment) -> dict[str, dict[str, int]]:
    """Maximum parallelism of operators, where known."""
    groups = deployment.problem.graph.operators.key_groups
    return {"max_parallelism": groups} if groups else {}


def _key_groups(groups: Mapping[str, int]) -> list[str]:
    """Instructions that make Flink use the key groups that the placement was computed for."""
    if not groups:
        return []
    usual = usual_max_parallelism(groups)
    lines = [
        f"The placement is for a maximum parallelism of {usual}. A job with state keeps its own.",
        f"Set that of a new job: -D {MAX_PARALLELISM}={usual}",
    ]
    others = [f"{name}: {number}" for name, number in groups.items() if number != usual]
    if others:
        lines.append(f"and by setMaxParallelism in the program, {', '.join(others)}")
    return lines


def _json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


_PYTHON_HEAD = '''\
"""Runs a PyFlink job with every operator on the device that streamplace chose.

Put this file beside the program and replace its last line, env.execute("name"), by
    from placed import placed
    placed(env).execute("name")
SQL takes part after statement_set.attach_as_datastream(). Operators are known by their names
(.name("...") in the program) or their uids.

Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json
"""

from __future__ import annotations
'''
_PYTHON_TAIL = '''\
def placed(env: Any) -> PlacedEnvironment:
    """Environment whose job runs where it was placed.

    MANAGED may hold TaskManagers whose managed memory is not MANAGED_MB, with theirs in MB.
    """
    return PlacedEnvironment(env, OPERATORS, PARALLELISM, GROUPS, SPREAD, MANAGED)
'''


def placed(
    env: Any,
    placement: str | Path | Mapping[str, str],
    *,
    rest: str | None = None,
    devices: Sequence[str] = (),
) -> PlacedEnvironment:
    """Environment of a PyFlink program that runs its job with a placement.

    Parameters
    ----------
    env
        The program's StreamExecutionEnvironment. SQL statements are added to it by
        ``statement_set.attach_as_datastream()``.
    placement
        A file written by ``streamplace place``, or operator (or subtask) → device.
    rest
        Address of the cluster; if given, its devices and free group indexes are read from it.
    devices
        All devices of the cluster, in any order, if ``rest`` is not given; only placements that
        spread the subtasks of an operator need them.
    """
    managed: dict[str, int] = {}
    if isinstance(placement, Mapping):
        layout = Layout.of(placement)
    else:
        layout = Layout.read(Path(placement))
    if rest is None:
        answer = pinning(layout, SpreadLimits.untouched(devices))
    else:
        cluster = Rest(rest)
        check_cluster(cluster, layout)
        cluster.wait_released()
        answer, managed = fitted(cluster, layout)
    return PlacedEnvironment(
        env, answer.operators, answer.parallelism, answer.groups, answer.spread, managed
    )
