"""Overloaded jobs of several sources: what the model says that each source gets, and the engine.

Run ``python benchmarks/overloaded.py [--problems 1000]``. The problems are random graphs of two to
five sources and up to ten operators, at random on two to four devices.
"""

import argparse

import numpy as np
from streamsim import throughput
from streamsim.engine import GivenSettings, fit
from streamsim.overload import overloaded_shares
from studies import markdown

from streamplace import Cluster, Problem
from streamplace.families.registry import FAMILIES, graph_of
from streamplace.model.arrays import Floats


def main() -> None:
    """Print the differences by number of sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    number = parser.parse_args().problems
    found: dict[str, list[Floats]] = {}
    for i in range(10 * number):
        rng = np.random.default_rng(i)
        sources, devices = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        family = FAMILIES["random-dag"]
        operators = sources + int(rng.integers(1, 6))
        parameters = family.parameters(
            operators=operators, sources=sources, devices=devices, rate=20_000, count=1
        )
        item = next(family.generate(parameters, seed=i))
        problem = (
            item if isinstance(item, Problem) else Problem(graph_of(item), Cluster.uniform(devices))
        )
        instance = problem.instance
        place = rng.integers(0, devices, operators).astype(np.int32)
        if throughput(instance, place[None])[0] >= 0.99:
            continue
        fitted = fit(instance, place, GivenSettings())
        if fitted.doubt is None:
            engine = fitted.runs.sources[0] / instance.rate[instance.sources]
            errors = abs(overloaded_shares(instance, place) - engine)
            found.setdefault(str(sources), []).append(errors)
        if sum(map(len, found.values())) == number:
            break
    rows = []
    for name in [*sorted(found), "all"]:
        errors = found[name] if name in found else [each for one in found.values() for each in one]
        each = np.concatenate(errors)
        row = {"sources": name, "problems": str(len(errors)), "mean": float(each.mean())}
        row |= {f"{q} %": float(np.quantile(each, q / 100)) for q in (50, 90, 99)}
        rows.append(row | {"largest": float(each.max())})
    print(markdown(rows, digits=4))


if __name__ == "__main__":
    main()
