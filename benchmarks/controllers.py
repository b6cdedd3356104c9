"""Controllers: policies on rates over time, against the schedule of a known day and its bound.

    python benchmarks/controllers.py

Eight traces of a week, three of them published (datasets/traces) and five generated from the seed,
are scaled so that four applications (datasets/applications) need 24 cores at their peaks. Plans
choose among four types of machines. Every policy decides every five minutes without knowing the
rates to come. It prints a table over all pairs of trace and application, and one by trace. No
parameter of any policy was chosen by these traces: choose it by others, generated in other ways, so
that a parameter which fits these by chance gains nothing on the page.
"""

import functools
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from studies import table

from streamplace import Offer, StreamGraph, plan, read_graph
from streamplace.control.policy import POLICIES
from streamplace.control.problem import MoveTerms, control_day
from streamplace.control.replay import replay
from streamplace.control.schedule import PlanSchedule, cheapest_levels, lower_bound
from streamplace.evaluate.plans import BOUND_NODES
from streamplace.model.arrays import Floats
from streamplace.placers.registry import Budget
from streamplace.planning.bounds import proven_bound
from streamplace.planning.offers import Catalogue
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.result import PlanResult
from streamplace.planning.traces import RateTrace, read_trace

ROOT = Path(__file__).parents[1]
APPLICATIONS = ("word-count", "nexmark-q5", "spike-detection", "riot-etl")
PUBLISHED = ("wikipedia", "taxi", "alibaba")
OFFERS = [
    Offer(f"m{cores}", price, cores=cores)
    for cores, price in ((1, 0.055), (2, 0.1), (4, 0.19), (8, 0.37))
]
BUDGET = Budget(evaluations=3000)
SEED, DAYS, ROW, CORES, MIPS = 20_271, 7, 300.0, 24.0, 2500.0
DAY = 86_400.0
OURS = "work-function"


def generated() -> Iterator[tuple[str, Floats]]:
    """Rates in rows of five minutes, the highest of which is 1."""
    rng = np.random.default_rng(SEED)
    time_ = np.arange(0.0, DAYS * DAY, ROW)
    day = 2 * np.pi * time_ / DAY
    weekday = np.where(time_ // DAY % 7 < 5, 1.0, 0.6)
    yield "sine", (1.3 + np.sin(day)) * rng.lognormal(0.0, 0.04, len(time_))
    lunch = np.exp(-((time_ % DAY / 3600 - 12.5) ** 2) / 3)
    evening = np.exp(-((time_ % DAY / 3600 - 19.5) ** 2) / 6)
    yield "two peaks", weekday * (0.3 + lunch + 0.8 * evening) * rng.lognormal(0, 0.03, len(time_))
    spikes = np.ones(len(time_))
    for start in rng.integers(0, len(time_), 12).tolist():
        spikes[start : start + int(rng.integers(3, 36))] *= rng.uniform(1.5, 3.0)
    yield "spikes", np.minimum(spikes, 3.5) * rng.lognormal(0.0, 0.03, len(time_))
    levels = np.repeat(rng.uniform(0.25, 1.0, DAYS * 5), len(time_) // (DAYS * 5) + 1)
    yield "steps", levels[: len(time_)] * rng.lognormal(0.0, 0.02, len(time_))
    walk = np.cumsum(rng.normal(0.0, 0.02, len(time_)))
    yield "random walk", np.exp(np.clip(walk - walk.max(), -2.0, 0.0))


def traces() -> Iterator[tuple[str, RateTrace]]:
    """Traces of a week that judge, the highest rate of which is 1 tuple/s."""
    for name in PUBLISHED:
        trace = read_trace(ROOT / f"datasets/traces/{name}.csv")
        yield name, RateTrace(trace.time, trace.sources, trace.rates / trace.rates.max())
    for name, rates in generated():
        at = ROW * np.arange(len(rates))
        yield name, RateTrace(at, ("rate",), (rates / rates.max())[:, None])


def peak_rate(graph: StreamGraph) -> float:
    """Tuples/s at which the operators of a graph take all of the cores."""
    always = float(graph.operators.constant.sum())
    each = float((graph.charged_ipt * graph.input_rate).sum()) / 1e6 / graph.source_rate
    return (CORES * MIPS - always) / each


@functools.cache
def planned(job: str, rate: float) -> PlanResult:
    """Return the plan for a rate, which several traces ask for."""
    return plan(application(job).at_rate(rate), offers=OFFERS, budget=BUDGET, jobs=1)


@functools.cache
def bounded(job: str, rate: float) -> float:
    """Cost per hour below which no plan for a rate is."""
    settings = PlannerSettings(budget=BUDGET)
    problem = PlanProblem.of(application(job).at_rate(rate), Catalogue.of(OFFERS), settings)
    bound = proven_bound(problem.demand, problem.catalogue, max_nodes=BOUND_NODES)
    return 0.0 if bound is None else float(bound.value)


@functools.cache
def application(job: str) -> StreamGraph:
    """Read an application."""
    return read_graph(ROOT / f"datasets/applications/{job}.json")


def scheduled(job: str, trace: RateTrace, slot: float) -> PlanSchedule:
    """Return what `plan_schedule` finds for a trace whose highest rate is 1."""
    graph = application(job)
    day = control_day(
        graph,
        RateTrace(trace.time, trace.sources, peak_rate(graph) * trace.rates),
        slot,
        MoveTerms(),
        lambda graphs: [planned(job, each.source_rate) for each in graphs],
        lambda each: bounded(job, each.source_rate),
    )
    replays = tuple(replay(day, name, POLICIES[name]) for name in POLICIES)
    return PlanSchedule(day, cheapest_levels(day), lower_bound(day), replays)


def rows_of(name: str, found: PlanSchedule) -> Iterator[tuple[str, str, Floats]]:
    """Trace, policy, and its cost over schedule and bound, moves a day, and punctuality."""
    days = len(found.level) * found.day.slots.seconds / DAY
    for one in found.replays:
        cost = (one.cost / found.cost, one.cost / found.bound)
        yield name, one.name, np.array([*cost, one.moves / days, one.punctual])


def as_tables(rows: list[tuple[str, str, Floats]]) -> str:
    """Table of the policies over all pairs, and of ours by trace."""
    names = sorted({policy for _, policy, _ in rows})
    heads = ("policy", "of schedule, mean", "worst", "of bound, mean", "moves a day, mean")
    lines = []
    for name in names:
        own = np.array([values for _, policy, values in rows if policy == name])
        mean, top, low = own.mean(axis=0), own.max(axis=0), own.min(axis=0)
        costs = f"{mean[0]:.3f}", f"{top[0]:.3f}", f"{mean[1]:.3f}"
        ends = f"{mean[2]:.1f}", f"{top[2]:.1f}", f"{mean[3]:.2%}", f"{low[3]:.2%}"
        lines.append((f"`{name}`", *costs, *ends))
    by_trace = []
    for trace in dict.fromkeys(trace for trace, _, _ in rows):
        mean = np.mean([v for t, policy, v in rows if (t, policy) == (trace, OURS)], axis=0)
        ends = f"{mean[2]:.1f}", f"{mean[3]:.2%}"
        by_trace.append((trace, f"{mean[0]:.3f}", f"{mean[1]:.3f}", *ends))
    return (
        f"{table((*heads, 'worst', 'in time, mean', 'worst'), lines)}\nBy trace, `{OURS}`:\n\n"
        + table(("trace", "of schedule", "of bound", "moves a day", "in time"), by_trace)
    )


@click.command()
@click.option("--applications", default=",".join(APPLICATIONS), show_default=True)
@click.option("--traces", "wanted", help="Such as taxi,steps.  [default: all]")
@click.option("--slot", default=300.0, show_default=True, help="Seconds between decisions.")
def main(applications: str, wanted: str | None, slot: float) -> None:
    """Replay all policies on all traces and applications."""
    chosen = [(n, t) for n, t in traces() if wanted is None or n in wanted.split(",")]
    rows: list[tuple[str, str, Floats]] = []
    for (name, trace), job in itertools.product(chosen, applications.split(",")):
        began = time.process_time()
        found = scheduled(job, trace, slot)
        rows += rows_of(name, found)
        ours = next(one for one in found.replays if one.name == OURS)
        click.echo(
            f"{name}, {job}: {len(found.plans)} plans, schedule {found.cost:.1f} "
            f"({found.cost / found.bound:.3f} of the bound, {len(found.steps) - 1} moves), "
            f"{OURS} {ours.cost / found.cost:.3f}, {ours.moves / DAYS:.1f} moves a day, "
            f"{ours.punctual:.2%} in time ({time.process_time() - began:.0f} s of CPU)"
        )
    click.echo(as_tables(rows))


if __name__ == "__main__":
    main()
