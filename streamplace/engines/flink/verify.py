"""Verifying: where every subtask of a running job really is, against where it should be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamplace.engines.flink.pinning import Vectors, counts
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.tasks import members, read_vertices

SCHEDULER = "Default"


@dataclass(frozen=True, slots=True)
class Check:
    """One operator: how many of its subtasks each device should run, and does.

    ``expected`` is empty for an operator that the placement does not know, ``actual`` for one that
    the job does not have.
    """

    operator: str
    expected: Mapping[str, int]
    actual: Mapping[str, int]

    @property
    def fine(self) -> bool:
        """Whether they agree."""
        return dict(self.expected) == dict(self.actual)


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a placement.

    Attributes
    ----------
    problems
        What is wrong beside single operators, in words.
    """

    checks: tuple[Check, ...]
    problems: tuple[str, ...]

    @property
    def fine(self) -> bool:
        """Whether every subtask runs where it should."""
        return not self.problems and all(check.fine for check in self.checks)


def verify(rest: Rest, job: str, vectors: Vectors) -> Verification:
    """Compare a running job with a placement, subtask counts by operator and device."""
    document = rest.job(job)
    checks: dict[str, Check] = {}
    for vertex in read_vertices(rest, job, document):
        for name in members(vertex.name, vectors):
            expected = _expected(vectors.get(name, ()), vertex.parallelism)
            known = checks.get(name, Check(name, {}, {}))  # several operators may bear the name
            both = _sum(known.expected, expected), _sum(known.actual, vertex.devices)
            checks[name] = Check(name, *both)
    missing = [Check(name, counts(vectors[name]), {}) for name in vectors if name not in checks]
    problems = _problems(rest, document["state"], document.get("schedulerType", ""))
    return Verification((*checks.values(), *missing), tuple(problems))


def _expected(vector: Sequence[str], parallelism: int) -> dict[str, int]:
    return {vector[0]: parallelism} if len(vector) == 1 else counts(vector)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _problems(rest: Rest, state: str, scheduler: str) -> Iterator[str]:
    if state != "RUNNING":
        yield f"the job is {state}; only a running job has a placement"
    if scheduler != SCHEDULER and (scheduler or _scheduler_setting(rest) == "adaptive"):
        yield (
            f"the scheduler is {scheduler or 'Adaptive'}, which ignores placements; set "
            "jobmanager.scheduler: default (no reactive mode) and restart the JobManager"
        )


def _scheduler_setting(rest: Rest) -> str:
    """Scheduler as configured; versions before 2 do not name it with the job."""
    settings = {row["key"]: row["value"] for row in rest.get("/jobmanager/config")}
    reactive = settings.get("scheduler-mode", "").lower() == "reactive"
    return "adaptive" if reactive else settings.get("jobmanager.scheduler", "").lower()
