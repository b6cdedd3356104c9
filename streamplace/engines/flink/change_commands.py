"""The commands that would give a job the machines and the parallelism of a plan."""

import json
import shlex
from collections.abc import Mapping, Sequence

from streamplace.engines.flink.current_machines import CurrentMachines
from streamplace.engines.flink.plan import FlinkTask
from streamplace.engines.flink.rest import Rest
from streamplace.planning.result import PlanResult

FOLDER = "plan"
"""Folder of a plan in commands, as given by -o."""


def change_commands(
    rest: Rest, job: str, tasks: Sequence[FlinkTask], current: CurrentMachines, plan: PlanResult
) -> tuple[str, ...]:
    """Commands, line by line; comments say which machines to start and to stop."""
    lines = [*_machine_lines(current.counts, plan.machines)] if current.is_priced else []
    if _is_adaptive(rest, job):
        return (*lines, _rescaling(rest, job, tasks, plan.parallelism))
    numbers = set(plan.parallelism.values())
    if len(numbers) == 1:
        lines += [
            f"flink stop --savepointPath SAVEPOINTS {job}",
            f"flink run -s SAVEPOINT -p {numbers.pop()} JAR ARGUMENTS",
            "# or, with every subtask where the plan has it:",
        ]
    where = f"--rest {shlex.quote(rest.url)} --job {job}"
    return (
        *lines,
        f"streamplace flink config --cluster {FOLDER}/cluster.toml --subtasks -o config/",
        f"streamplace flink move JAR {where} --placement {FOLDER}/placement.json "
        "--savepoints SAVEPOINTS -- ARGUMENTS",
    )


def _machine_lines(now: Mapping[str, int], planned: Mapping[str, int]) -> list[str]:
    """Comments that say which machines to start and to stop."""
    lines = []
    for name in dict.fromkeys((*planned, *now)):
        change = planned.get(name, 0) - now.get(name, 0)
        if change:
            lines.append(f"# {'start' if change > 0 else 'stop'} {abs(change)} × {name}")
    return sorted(lines, key=lambda line: line.startswith("# stop"))


def _rescaling(
    rest: Rest, job: str, tasks: Sequence[FlinkTask], parallelism: Mapping[str, int]
) -> str:
    """Request by which the adaptive scheduler changes the parallelism of a running job."""
    wanted = {
        task.id: {"parallelism": {"lowerBound": 1, "upperBound": parallelism[task.name]}}
        for task in tasks
    }
    url = shlex.quote(f"{rest.url}/jobs/{job}/resource-requirements")
    document = shlex.quote(json.dumps(wanted))
    return f"curl -X PUT {url} -H 'Content-Type: application/json' -d {document}"


def _is_adaptive(rest: Rest, job: str) -> bool:
    """Whether the adaptive scheduler runs a job; versions before 2 do not name it with the job."""
    scheduler = rest.job(job).get("schedulerType")
    if scheduler:
        return str(scheduler) == "Adaptive"
    settings = rest.settings()
    is_reactive = settings.get("scheduler-mode", "").lower() == "reactive"
    return is_reactive or settings.get("jobmanager.scheduler", "").lower() == "adaptive"
