"""Proofs with several sources: test graphs of the standard benchmark with a part of their rate.

Run ``python benchmarks/several_sources.py [--graphs 20] [--seconds 3]``. Each graph, at 20,000
tuples/s on five devices, is proven with its source alone and with one or two more of equal rate,
*beside* it (they feed the same operators) or *inside* (they feed other ones), by turns.
"""

import argparse
from dataclasses import replace

import numpy as np
from studies import markdown, test_problems

from streamplace import Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

CASES = ((1, "beside"), (2, "beside"), (2, "inside"), (3, "beside"), (3, "inside"))


def main() -> None:
    """Print one row per number of sources and place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    problems = test_problems(2e4)
    problems = problems[:: len(problems) // given.graphs][: given.graphs]
    budget, exact, judge = Budget(given.seconds), PLACERS["exact"], OBJECTIVES["throughput"]
    for case in CASES:  # compiles kernels
        exact.place(with_sources(problems[-1], *case), judge, budget=budget)
    results = [
        [exact.place(with_sources(problem, *case), judge, budget=budget) for case in CASES]
        for problem in problems
    ]
    rows = []
    for case, answers in zip(CASES, zip(*results, strict=True), strict=True):
        open_ = [answer for answer in answers if not answer.proven]
        gaps = [(answer.bound or 1.0) / answer.value - 1 for answer in open_]
        rows.append(
            {
                "sources": f"{case[0]}, {case[1]}" if case[0] > 1 else "1",
                "proven": f"{len(answers) - len(open_)} of {len(answers)}",
                "median ms": 1e3 * float(np.median([answer.seconds for answer in answers])),
                "gap of the others, %": 100 * float(np.mean(gaps)) if gaps else "–",
            }
        )
    print(markdown(rows, digits=1))


def with_sources(problem: Problem, n: int, where: str) -> Problem:
    """Divide the rate equally among n sources."""
    graph = problem.graph
    source, *others = (replace(one, rate=one.rate / n) for one in graph.operators)
    operators, streams = [source, *others], list(graph.streams)
    for i in range(1, n):
        name = f"{source.name} {i}"
        operators.append(replace(source, name=name))
        fed = [t for t in graph.streams if t.source == source.name]
        inside = [Stream(name, others[len(others) * i // n].name)]
        streams += [replace(t, source=name) for t in fed] if where == "beside" else inside
    return Problem(StreamGraph.of(graph.name, operators, streams), problem.cluster)


if __name__ == "__main__":
    main()
