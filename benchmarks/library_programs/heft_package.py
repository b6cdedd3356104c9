"""HEFT of the package heft as a program, for makespans.

    python heft_package.py PROBLEM ANSWER

The package is for Python 2, so its folder is added to the path, where it looks for its own module.
It computes ranks by recursion without a memory, which takes long on large graphs.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

from native import Instance

FORBIDDEN = 1e9
"""Times the longest time: for an operator that may not run on a device."""


def main():
    """Schedule an instance and write placement and order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("problem")
    parser.add_argument("answer")
    options = parser.parse_args()
    spec = importlib.util.find_spec("heft")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package heft is missing")
    sys.path.append(str(Path(next(iter(spec.submodule_search_locations)))))
    from heft.core import schedule

    instance = Instance(options.problem)
    work, send = instance.one_pass()
    longest = max(map(max, work))
    number = {(u, v): e for e, (u, v, _, _) in enumerate(instance.streams)}
    targets = {}
    for u, v, _, _ in instance.streams:
        targets.setdefault(u, []).append(v)

    def compute(v, device):
        return work[v][device] if device in instance.allowed[v] else FORBIDDEN * longest

    def transfer(u, v, receiver, sender):
        return send[number[u, v]][sender, receiver]

    lines, place = schedule(targets, range(len(instance.devices)), compute, transfer)
    start = {event.job: event.start for line in lines.values() for event in line}
    operators = range(len(instance.operators))
    instance.write(
        options.answer, [place.get(v, 0) for v in operators], [start.get(v, 0) for v in operators]
    )


if __name__ == "__main__":
    main()
