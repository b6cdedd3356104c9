"""Advice on a running job: what it costs, what would do for a rate, and what changing takes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from streamplace.engines.flink.current_machines import CurrentMachines
from streamplace.engines.flink.source_rates import SourceRate, offered_rate
from streamplace.model.display import Displayed
from streamplace.model.report import Report
from streamplace.planning.result import PlanResult


@dataclass(frozen=True, slots=True)
class OperatorLoad:
    """What an operator takes now, and how often it would run.

    Attributes
    ----------
    cpu
        Core seconds per tuple.
    source
        What the CPU was measured by.
    parallelism, planned
        Number of its subtasks, now and in the plan.
    max_parallelism
        Key groups as Flink tells them; 0 where it does not.
    """

    name: str
    cpu: float
    source: str
    parallelism: int
    planned: int
    max_parallelism: int


@dataclass(frozen=True, slots=True, eq=False)
class Advice(Displayed):
    """What a running job costs, and the cheapest machines for a rate.

    Attributes
    ----------
    job, name
        Id and name of the job.
    rate
        Tuples/s that were asked for.
    sources
        Rates of the sources now.
    current
        TaskManagers of the cluster, and what they cost per hour.
    carried
        Tuples/s that the job can carry where it runs; None where that is not known.
    operators
        CPU and parallelism of every operator.
    plan
        The cheapest plan that was found, with its bound.
    outage
        Seconds for which changing stops the job.
    commands
        What would change the job, line by line; none where nothing is to be changed.
    notes
        What was not measured, and what the advice leaves out, a sentence each.
    """

    job: str
    name: str
    rate: float
    sources: tuple[SourceRate, ...]
    current: CurrentMachines
    carried: float | None
    operators: tuple[OperatorLoad, ...]
    plan: PlanResult
    outage: float
    commands: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def gain(self) -> float:
        """Cost per hour of today's machines less that of the plan."""
        return self.current.cost - self.plan.cost

    @property
    def catch_up(self) -> float | None:
        """Seconds in which the plan works off what arrives during the outage; None: never."""
        spare = self.plan.carries - self.rate
        return self.outage * self.rate / spare if spare > 0 else None

    @property
    def observed(self) -> float:
        """Tuples/s that all sources together emit now."""
        return sum(source.observed for source in self.sources)

    @property
    def offered(self) -> float | None:
        """Tuples/s that all sources together are offered now; None where back-pressure hides it."""
        return offered_rate(self.sources)

    def report(self) -> Report:
        """Tables and sentences for a reader."""
        from streamplace.engines.flink.advice_report import report_of_advice

        return report_of_advice(self)

    def to_json(self) -> dict[str, Any]:
        """Return the advice as a JSON document."""
        return {
            "job": self.job,
            "name": self.name,
            "rate": self.rate,
            "observed": self.observed,
            "offered": self.offered,
            "sources": [_source(source) for source in self.sources],
            "current": {
                "cost": self.current.cost,
                "machines": self.current.counts,
                "carried": _finite(self.carried),
                "taskmanagers": [asdict(machine) for machine in self.current.machines],
            },
            "priced": self.current.is_priced,
            "operators": [asdict(operator) for operator in self.operators],
            "plan": self.plan.to_json(),
            "gain": self.gain,
            "outage": self.outage,
            "catch_up": self.catch_up,
            "commands": list(self.commands),
            "notes": list(self.notes),
        }


def _source(source: SourceRate) -> Mapping[str, Any]:
    return asdict(source) | {"offered": source.offered}


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
