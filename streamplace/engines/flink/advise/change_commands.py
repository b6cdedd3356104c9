"""Commands that give a job the machines and the parallelism of a plan."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from streamplace.engines.flink.advise.current_machines import CurrentMachines
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.engines.flink.rest.scheduler import is_adaptive
from streamplace.planning.result import PlanResult

FOLDER = "plan"
"""Folder of a plan in commands if -o names none."""


def change_commands(
    rest: Rest,
    job: str,
    tasks: Sequence[FlinkTask],
    current: CurrentMachines,
    plan: PlanResult,
    folder: str = FOLDER,
    is_remembered: bool = False,
) -> tuple[str, ...]:
    """Commands, line by line; comments say which machines to start first and to stop at the end.

    ``is_remembered`` says whether ``flink move`` knows the program of the job.
    """
    changes = _machine_changes(current.counts, plan.machines) if current.is_priced else {}
    starts = [f"# first start {number} × {name}" for name, number in changes.items() if number > 0]
    stops = [f"# then stop {-number} × {name}" for name, number in changes.items() if number < 0]
    if is_adaptive(rest, rest.job(job)):
        rescaling = _rescaling(rest, job, tasks, plan.parallelism)
        return (*starts, _slot_line(current, plan), rescaling, *stops)
    return (*starts, *_restart(rest, job, current, plan, folder, is_remembered), *stops)


def _restart(
    rest: Rest,
    job: str,
    current: CurrentMachines,
    plan: PlanResult,
    folder: str,
    is_remembered: bool,
) -> Iterator[str]:
    """Commands that stop a job with a savepoint and start it again from there."""
    address, written = shlex.quote(urlsplit(rest.url).netloc), folder.rstrip("/")
    numbers = set(plan.parallelism.values())
    if len(numbers) == 1:
        yield from (
            _slot_line(current, plan),
            f"flink stop -m {address} --savepointPath SAVEPOINTS {job}",
            f"flink run -d -m {address} -c ENTRY_CLASS -s SAVEPOINT -p {numbers.pop()} JAR "
            "ARGUMENTS",
            "# or, with every subtask where the plan has it:",
        )
    where = f"--rest {shlex.quote(rest.url)} --job {job}"
    cluster, placement = (
        shlex.quote(f"{written}/{name}") for name in ("cluster.toml", "placement.json")
    )
    yield f"streamplace flink config --cluster {cluster} --subtasks -o config/"
    to = f"--placement {placement} --savepoints SAVEPOINTS"
    if is_remembered:
        yield f"streamplace flink move {where} {to}"
    else:
        yield f"streamplace flink move JAR {where} --entry-class ENTRY_CLASS {to} -- ARGUMENTS"


def _slot_line(current: CurrentMachines, plan: PlanResult) -> str:
    """Comment with the number of slots that TaskManagers need if Flink places the subtasks."""
    slots = plan.slots.machines
    if not current.is_priced:
        return f"# taskmanager.numberOfTaskSlots: at least {max(slots.values())}"
    each = ", ".join(f"{number} on {name}" for name, number in slots.items())
    return f"# taskmanager.numberOfTaskSlots: at least {each}"


def _machine_changes(now: Mapping[str, int], planned: Mapping[str, int]) -> dict[str, int]:
    """Number of machines of each type to start, or to stop if negative."""
    return {
        name: planned.get(name, 0) - now.get(name, 0) for name in dict.fromkeys((*planned, *now))
    }


def _rescaling(
    rest: Rest, job: str, tasks: Sequence[FlinkTask], parallelism: Mapping[str, int]
) -> str:
    """Request that makes the adaptive scheduler change the parallelism of a running job."""
    wanted = {
        task.id: {"parallelism": {"lowerBound": 1, "upperBound": parallelism[task.name]}}
        for task in tasks
    }
    url = shlex.quote(f"{rest.url}/jobs/{job}/resource-requirements")
    document = shlex.quote(json.dumps(wanted))
    return f"curl -X PUT {url} -H 'Content-Type: application/json' -d {document}"
