"""A CP-SAT model (OR-tools) as a program that reads a problem and writes a placement.

    python cpsat.py throughput|makespan PROBLEM ANSWER --seconds 10 [--seed 0]

Throughput: the load of the fullest device, link or card is as small as possible. Makespan: optional
intervals on the cores of the devices, and the transfer of every stream between any two devices. The
limit is for the processor time from the start of the model on.
"""

import argparse
import time
from itertools import product
from threading import Thread

from native import Instance
from ortools.sat.python import cp_model

SCALE = 10**6
"""Loads and times are whole numbers; the largest is this."""


def assignment(model, instance):
    """A variable for every operator and device, and for every stream and pair of devices."""
    k = range(len(instance.devices))
    on = [
        [model.new_bool_var("") if d in allowed else model.new_constant(0) for d in k]
        for allowed in instance.allowed
    ]
    for row in on:
        model.add_exactly_one(row)
    between = []
    for u, v, _, _ in instance.streams:
        pairs = {(a, b): model.new_bool_var("") for a, b in product(k, k)}
        for a in k:
            model.add(sum(pairs[a, b] for b in k) == on[u][a])
            model.add(sum(pairs[b, a] for b in k) == on[v][a])
        between.append(pairs)
    return on, between


def throughput(model, instance, on, between):
    """Minimise the largest load."""
    k, n = range(len(instance.devices)), range(len(instance.operators))
    loads = {("device", d): [(instance.load(v, d), on[v][d]) for v in n] for d in k}
    for (_, _, tuples, size), pairs in zip(instance.streams, between, strict=True):
        for (a, b), used in pairs.items():
            if a != b:
                resources = {
                    ("link", a, b): instance.gap + size * instance.wire[a][b],
                    ("egress", a): size * instance.egress[a],
                    ("ingress", b): size * instance.ingress[b],
                    ("device", a): instance.overhead / instance.cores[a],
                    ("device", b): instance.overhead / instance.cores[b],
                }
                for resource, cost in resources.items():
                    if cost * tuples:
                        loads.setdefault(resource, []).append((cost * tuples, used))
    for v, row in enumerate(on):
        share = instance.rate[v] / instance.parallelism[v]
        loads["core", v] = [(share * instance.seconds[v][d], used) for d, used in enumerate(row)]
    largest = max(sum(x for x, _ in terms) for terms in loads.values())
    scale, most = SCALE / largest, model.new_int_var(0, 2 * SCALE, "")
    for terms in loads.values():
        model.add(sum(round(x * scale) * used for x, used in terms) <= most)
    model.minimize(most)


def makespan(model, instance, on, between):
    """Minimise the end of the last operator; return the starts."""
    work, send = instance.one_pass()
    longest = sum(map(max, work)) + sum(max(times.values()) for times in send)
    scale, end = SCALE / longest, model.new_int_var(0, SCALE + len(work), "")
    starts, ends, lines = [], [], [[] for _ in instance.devices]
    for v, row in enumerate(on):
        start, finish = (model.new_int_var(0, SCALE + len(work), "") for _ in range(2))
        for d, used in enumerate(row):
            size = round(work[v][d] * scale)
            lines[d].append(model.new_optional_interval_var(start, size, finish, used, ""))
        model.add(finish <= end)
        starts.append(start)
        ends.append(finish)
    for (u, v, _, _), pairs, times in zip(instance.streams, between, send, strict=True):
        wait = sum(round(times[pair] * scale) * used for pair, used in pairs.items())
        model.add(starts[v] >= ends[u] + wait)
    for line, cores in zip(lines, instance.cores, strict=True):
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


def main():
    """Solve an instance and write the placement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("objective", choices=["throughput", "makespan"])
    parser.add_argument("problem")
    parser.add_argument("answer")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    instance, model, solver = Instance(options.problem), cp_model.CpModel(), cp_model.CpSolver()
    stop_after(solver, options.seconds)
    on, between = assignment(model, instance)
    goal = {"throughput": throughput, "makespan": makespan}[options.objective]
    starts = goal(model, instance, on, between)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = options.seed
    solver.parameters.catch_sigint_signal = False
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SystemExit("no placement within the time")
    devices = [max(range(len(row)), key=lambda d: solver.value(row[d])) for row in on]
    order = None if starts is None else [solver.value(start) for start in starts]
    instance.write(options.answer, devices, order)


if __name__ == "__main__":
    main()
