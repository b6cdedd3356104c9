"""Controllers: policies on rates over time, against the schedule of a known day and its bound.

    python benchmarks/controllers.py

Eight traces of a week, three of them published (datasets/traces) and five generated from the seed,
are scaled so that four applications (datasets/applications) need 24 cores at their peaks. Plans
choose among four types of machines. Every policy decides every five minutes without knowing the
rates to come. It prints a table over all pairs of trace and application, and one by trace. No
parameter of any policy was chosen by these traces, but by `development_rates`, which
``--development`` replays instead: they differ in their generators, their seed and their periods, so
that a parameter which fits these by chance gains nothing on the page.
"""

import functools
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from streamplace import Offer, StreamGraph, plan, read_graph
from streamplace.api.planning import BOUND_NODES
from streamplace.control.policy import POLICIES
from streamplace.control.problem import MoveTerms, control_day
from streamplace.control.replay import replay
from streamplace.control.schedule import PlanSchedule, cheapest_levels, lower_bound
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
DAY, DEVELOPMENT_SEED = 86_400.0, 4_711
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


def development_rates() -> Iterator[tuple[str, Floats]]:
    """Names and rates of a week, in rows of five minutes, by which parameters are chosen."""
    rng = np.random.default_rng(DEVELOPMENT_SEED)
    at = np.arange(0.0, DAYS * DAY, ROW) / 3600
    hour, day, rows = at % 24, (at // 24).astype(int), len(at)

    tilted = np.where(hour < 8, hour / 8, (24 - hour) / 16)
    yield "tilted days", (0.3 + tilted**1.5) * rng.lognormal(0.0, 0.05, rows)

    turn = 2 * np.pi * at / 9
    waves = 1.6 + np.sin(turn) + 0.3 * np.sin(3 * turn + 1)
    yield "nine hours", waves * rng.lognormal(0.0, 0.03, rows)

    work = np.clip(hour - 7, 0, 1) * np.clip(18.5 - hour, 0, 1)
    yield "office", (0.25 + work * np.where(day < 5, 1.0, 0.3)) * rng.lognormal(0.0, 0.03, rows)

    bursts = 1 + 0.3 * np.sin(2 * np.pi * at / 24)
    for start in rng.uniform(0, at[-1], 9).tolist():
        age = np.maximum(at - start, 0.0)
        bursts += (at >= start) * rng.uniform(0.5, 2.0) * np.exp(-age / rng.uniform(0.3, 2.0))
    yield "bursts", bursts * rng.lognormal(0.0, 0.03, rows)

    held = np.repeat(rng.lognormal(0.0, 0.4, rows), rng.geometric(1 / 72, rows))[:rows]
    yield "shifts", held * rng.lognormal(0.0, 0.04, rows)

    yield "returning", np.exp(0.35 * _correlated(rng, rows, 72)) * rng.lognormal(0.0, 0.01, rows)

    growing = (1.2 + np.sin(2 * np.pi * (at - 9) / 24)) * (1 + at / at[-1])
    yield "growing days", growing * np.exp(0.06 * _correlated(rng, rows, 10))

    peaks = np.full(rows, 0.35)
    for number in range(DAYS):
        for middle, width in ((8.5, 1.0), (13.0, 1.5), (20.5, 2.0)):
            centre = 24 * number + middle + rng.normal(0.0, 0.4)
            peaks += rng.uniform(0.6, 1.1) * np.exp(-(((at - centre) / width) ** 2) / 2)
    yield "three peaks", peaks * rng.lognormal(0.0, 0.04, rows)


def _correlated(rng: np.random.Generator, rows: int, memory: float) -> Floats:
    """Noise of mean 0 and deviation 1 that forgets within so many rows."""
    keep = np.exp(-1 / memory)
    drawn, values = rng.normal(0.0, np.sqrt(1 - keep**2), rows), np.empty(rows)
    now = float(rng.normal())
    for row in range(rows):
        now = keep * now + float(drawn[row])
        values[row] = now
    return values


def traces() -> Iterator[tuple[str, RateTrace]]:
    """Traces of a week that judge, the highest rate of which is 1 tuple/s."""
    for name in PUBLISHED:
        trace = read_trace(ROOT / f"datasets/traces/{name}.csv")
        yield name, RateTrace(trace.time, trace.sources, trace.rates / trace.rates.max())
    yield from whole_of(generated())


def whole_of(rows: Iterator[tuple[str, Floats]]) -> Iterator[tuple[str, RateTrace]]:
    """Traces of generated rates, the highest of which becomes 1 tuple/s."""
    for name, rates in rows:
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
    bound = proven_bound(problem.demand, problem.catalogue, most_nodes=BOUND_NODES)
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


def table(rows: list[tuple[str, str, Floats]]) -> str:
    """Table of the policies over all pairs, and of ours by trace."""
    names = sorted({policy for _, policy, _ in rows})
    text = (
        "| policy | of schedule, mean | worst | of bound, mean | moves a day, mean | worst | "
        "in time, mean | worst |\n|---|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    means = {}
    for name in names:
        own = np.array([values for _, policy, values in rows if policy == name])
        means[name] = own.mean(axis=0)
        mean, top, low = own.mean(axis=0), own.max(axis=0), own.min(axis=0)
        cells = f"{mean[0]:.3f} | {top[0]:.3f} | {mean[1]:.3f} | {mean[2]:.1f} | {top[2]:.1f}"
        text += f"| `{name}` | {cells} | {mean[3]:.2%} | {low[3]:.2%} |\n"
    text += f"\nBy trace, `{OURS}`:\n\n| trace | of schedule | of bound | moves a day | in time |\n"
    text += "|---|---:|---:|---:|---:|\n"
    for trace in dict.fromkeys(trace for trace, _, _ in rows):
        own = np.array([v for t, policy, v in rows if (t, policy) == (trace, OURS)])
        mean = own.mean(axis=0)
        text += f"| {trace} | {mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.1f} | {mean[3]:.2%} |\n"
    return text


@click.command()
@click.option("--applications", default=",".join(APPLICATIONS), show_default=True)
@click.option("--traces", "wanted", help="Such as taxi,steps.  [default: all]")
@click.option("--slot", default=300.0, show_default=True, help="Seconds between decisions.")
@click.option("--development", is_flag=True, help="Replay the traces that parameters come from.")
def main(applications: str, wanted: str | None, slot: float, development: bool) -> None:
    """Replay all policies on all traces and applications."""
    every = whole_of(development_rates()) if development else traces()
    chosen = [(n, t) for n, t in every if wanted is None or n in wanted.split(",")]
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
    click.echo(table(rows))


if __name__ == "__main__":
    main()
