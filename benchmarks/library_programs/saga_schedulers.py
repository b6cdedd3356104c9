"""Schedulers of SAGA as programs, for makespans.

    python saga_schedulers.py Heft|Cpop|… PROBLEM ANSWER

The interpreter needs the package anrg-saga. SAGA's networks have a speed for every node and link,
so times of devices are those of the mean operator, and latencies become part of the data.
"""

import argparse
import sys
from itertools import combinations
from statistics import mean

sys.path.pop(0)
from saga import Network, TaskGraph, schedulers

sys.path.insert(0, __file__.rpartition("/")[0])
from native import Instance


def problem_of(instance):
    """Network and task graph of SAGA."""
    work, send = instance.one_pass()
    devices = range(len(instance.devices))
    speeds = [1 / max(mean(row[d] for row in work), 1e-300) for d in devices]
    costs = [mean(row[d] * speeds[d] for d in devices) for row in work]
    sizes = [tuples * size / max(instance.sources) for _, _, tuples, size in instance.streams]
    pairs = list(combinations(devices, 2))
    usual = sum(map(mean_time, send)) or 1.0
    links = [
        (instance.devices[a], instance.devices[b], sum(sizes) / between if between else 1e18)
        for a, b in pairs
        for between in [sum(times[a, b] + times[b, a] for times in send) / 2]
    ]
    names = instance.operators
    network = Network.create(list(zip(instance.devices, speeds, strict=True)), links)
    graph = TaskGraph.create(
        list(zip(names, (max(cost, 1e-12) for cost in costs), strict=True)),
        [
            (names[u], names[v], max(size, 1e-12 * usual))
            for (u, v, _, _), size in zip(instance.streams, sizes, strict=True)
        ],
    )
    return network, graph


def mean_time(times):
    """Mean time of a transfer."""
    return mean(times.values())


def main():
    """Schedule an instance and write placement and order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scheduler")
    parser.add_argument("problem")
    parser.add_argument("answer")
    options = parser.parse_args()
    instance = Instance(options.problem)
    network, graph = problem_of(instance)
    schedule = getattr(schedulers, f"{options.scheduler}Scheduler")().schedule(network, graph)
    runs = {run.name: run for line in schedule.mapping.values() for run in line}
    devices = [instance.devices.index(runs[name].node) for name in instance.operators]
    instance.write(options.answer, devices, [runs[name].start for name in instance.operators])


if __name__ == "__main__":
    main()
