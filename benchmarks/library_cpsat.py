"""A plain CP-SAT model (OR-tools) of placements for entries of the library.

Throughput: the load of the fullest device, link or card is as small as possible. Makespan: optional
intervals on the cores of the devices, and the transfer of every stream between any two devices.
"""

import time
from itertools import product
from threading import Thread

import numpy as np
from ortools.sat.python import cp_model

from streamplace import Problem
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


def place(problem: Problem, objective: str, seconds: float) -> tuple[list[int], list[float] | None]:
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
