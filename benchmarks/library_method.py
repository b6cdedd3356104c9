"""A placer of streamplace or of other projects as a program, which places an entry of the library.

    python library_method.py NAME PROBLEM ANSWER OBJECTIVE SECONDS

Searches are limited in processor time, as the machine may do other work. Partitioners need their
packages (kahip, mtkahypar), schedulers of SAGA need anrg-saga and pysmt.
"""

import sys
import time
from itertools import combinations, product
from pathlib import Path
from threading import Thread
from typing import Any

import large
import numpy as np
from ortools.sat.python import cp_model

from streamplace import Budget, Problem
from streamplace.io.placements import write_placement
from streamplace.io.problems import read_problem
from streamplace.model.placement import Placement
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.named import named_placer
from streamplace.scheduling.tasks import tasks_of, transfer

SCALE = 10**6
"""Loads and times are whole numbers; the largest is this."""


def assignment(model, problem):
    """A variable for every operator and device, and for every stream and pair of devices."""
    devices = range(problem.n_devices)
    may_run = np.isfinite(tasks_of(problem).work).tolist()
    on = [
        [model.new_bool_var("") if may else model.new_constant(0) for may in row] for row in may_run
    ]
    for row in on:
        model.add_exactly_one(row)
    between = []
    for u, v in ends_of(problem):
        pairs = {pair: model.new_bool_var("") for pair in product(devices, devices)}
        for a in devices:
            model.add(sum(pairs[a, b] for b in devices) == on[u][a])
            model.add(sum(pairs[b, a] for b in devices) == on[v][a])
        between.append(pairs)
    return on, between


def ends_of(problem):
    """Sender and receiver of every stream."""
    instance = problem.instance
    return list(zip(instance.source.tolist(), instance.target.tolist(), strict=True))


def throughput(model, problem, on, between):
    """Minimise the largest load."""
    instance = problem.instance
    busy = instance.input_rate[:, None] * instance.seconds[:, instance.device_type]
    shares, own = busy / instance.cores, busy / instance.parallelism[:, None]
    loads = {
        ("device", d): [(share[d], row[d]) for share, row in zip(shares.tolist(), on, strict=True)]
        for d in range(problem.n_devices)
    }
    for size, pairs in zip(instance.traffic.tolist(), between, strict=True):
        for (a, b), used in pairs.items():
            if a != b:
                resources = {
                    ("link", a, b): float(instance.seconds_per_byte[a, b]),
                    ("egress", a): float(instance.egress[a]),
                    ("ingress", b): float(instance.ingress[b]),
                }
                for resource, per_byte in resources.items():
                    if per_byte * size:
                        loads.setdefault(resource, []).append((per_byte * size, used))
    for v, (share, row) in enumerate(zip(own.tolist(), on, strict=True)):
        loads["core", v] = list(zip(share, row, strict=True))
    scale = SCALE / max(sum(x for x, _ in terms) for terms in loads.values())
    most = model.new_int_var(0, 2 * SCALE, "")
    for terms in loads.values():
        model.add(sum(round(x * scale) * used for x, used in terms) <= most)
    model.minimize(most)


def makespan(model, problem, on, between):
    """Minimise the end of the last operator; return the starts."""
    tasks = tasks_of(problem)
    work = np.where(np.isfinite(tasks.work), tasks.work, 0).tolist()
    send = [{(a, b): transfer(tasks, e, a, b) for a, b in pairs} for e, pairs in enumerate(between)]
    longest = sum(map(max, work)) + sum(max(times.values()) for times in send)
    scale, end = SCALE / longest, model.new_int_var(0, SCALE + len(work), "")
    starts, ends, lines = [], [], [[] for _ in range(problem.n_devices)]
    for v, row in enumerate(on):
        start, finish = (model.new_int_var(0, SCALE + len(work), "") for _ in range(2))
        for d, used in enumerate(row):
            size = round(work[v][d] * scale)
            lines[d].append(model.new_optional_interval_var(start, size, finish, used, ""))
        model.add(finish <= end)
        starts.append(start)
        ends.append(finish)
    for (u, v), pairs, times in zip(ends_of(problem), between, send, strict=True):
        wait = sum(round(times[pair] * scale) * used for pair, used in pairs.items())
        model.add(starts[v] >= ends[u] + wait)
    for line, cores in zip(lines, map(int, problem.instance.cores), strict=True):
        model.add_cumulative(line, [1] * len(line), cores)
    model.minimize(end)
    return starts


def stop_after(solver, seconds):
    """Stop the search when the process has used as much processor time."""
    end = time.process_time() + seconds

    def watch():
        while True:
            time.sleep(0.01)
            if time.process_time() > end:
                solver.stop_search()

    Thread(target=watch, daemon=True).start()


def by_cpsat(
    problem: Problem, objective: str, seconds: float
) -> tuple[list[int], list[float] | None]:
    """Devices of operators, and their starts where the objective is the makespan.

    The limit is for the processor time from the start of the model on.
    """
    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    stop_after(solver, seconds)
    on, between = assignment(model, problem)
    starts = {"throughput": throughput, "makespan": makespan}[objective](
        model, problem, on, between
    )
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.catch_sigint_signal = False
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SystemExit("no placement within the time")
    devices = [max(range(len(row)), key=lambda d: solver.value(row[d])) for row in on]
    return devices, starts and [solver.value(start) for start in starts]


SAGA = "SAGA-"
LEAST = 1e-12
"""Least work and data that SAGA takes."""


def placed(name: str, problem: Problem, objective: str, seconds: float) -> Placement:
    """Place by a method."""
    if name == "CP-SAT":
        place, starts = by_cpsat(problem, objective, seconds)
        return problem.placement(place) if starts is None else in_order(problem, place, starts)
    if name == "KaHIP":
        return large.kahip(problem, is_thorough=True).placement
    if name == "Mt-KaHyPar":
        return large.mt_kahypar(problem, is_thorough=True).placement
    if name.startswith(SAGA):
        return scheduled(problem, name.removeprefix(SAGA))
    judge, budget = OBJECTIVES[objective], Budget(seconds)
    return named_placer(name).place(problem, judge, seed=0, budget=budget).placement


def scheduled(problem: Problem, scheduler: str) -> Placement:
    """Schedule by a scheduler of SAGA.

    SAGA's networks have a speed for every node and link, so times of devices are those of the mean
    operator, and latencies become part of the data.
    """
    from saga import Network, TaskGraph, schedulers

    tasks, operators = tasks_of(problem), problem.graph.operators.name
    devices = problem.cluster.devices.name
    work = problem.one_pass.work[:, problem.instance.device_type]
    speed = 1 / np.maximum(work.mean(axis=0), 1e-300)
    cost, size = (work * speed).mean(axis=1), np.asarray(tasks.size)
    links = [
        (devices[a], devices[b], float(size.sum() / between) if between else 1e18)
        for a, b in combinations(range(len(devices)), 2)
        for between in [
            sum(transfer(tasks, e, a, b) + transfer(tasks, e, b, a) for e in range(len(size))) / 2
        ]
    ]
    ends = zip(tasks.source.tolist(), tasks.target.tolist(), strict=True)
    streams = [
        (operators[u], operators[v], max(float(x), LEAST))
        for (u, v), x in zip(ends, size, strict=True)
    ]
    costs = [max(float(x), LEAST) for x in cost]
    graph = TaskGraph.create(list(zip(operators, costs, strict=True)), streams)
    network = Network.create(list(zip(devices, speed.tolist(), strict=True)), links)
    schedule = getattr(schedulers, f"{scheduler}Scheduler")().schedule(network, graph)
    runs: dict[str, Any] = {run.name: run for line in schedule.mapping.values() for run in line}
    place = [devices.index(runs[name].node) for name in operators]
    return in_order(problem, place, [runs[name].start for name in operators])


def in_order(problem: Problem, place: list[int], starts: list[float]) -> Placement:
    """Placement whose operators run in the order of their starts, and of the graph among equals."""
    position = np.empty(problem.n_operators)
    position[problem.instance.order] = np.arange(problem.n_operators)
    priority = np.empty(problem.n_operators)
    priority[np.lexsort((position, starts))] = -np.arange(problem.n_operators)
    return problem.placement(problem.repaired(place), priority, "order")


if __name__ == "__main__":
    stopwatch.clock = time.process_time
    name, problem, answer, objective, seconds = sys.argv[1:]
    write_placement(placed(name, read_problem(Path(problem)), objective, float(seconds)), answer)
