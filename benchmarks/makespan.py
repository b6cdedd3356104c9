"""How far schedules are from the best: the benchmark of GiPH, and its wider grid.

    python benchmarks/makespan.py [--problems 60] [--setting multiple_networks|grid|cav|…] [--few]

Ratios of makespans to HEFT's and to the best known, and the share proven, on problems for testing;
with --few instead what is reached with few evaluations, the same on every machine.
"""

import argparse

import numpy as np
from studies import table

from streamplace.families.registry import FAMILIES
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

PLACERS = (
    ("heft", 1.0),
    ("peft", 1.0),
    ("cpop", 1.0),
    ("foresight", 1.0),
    ("anneal", 0.001),
    ("anneal", 0.01),
    ("anneal", 0.1),
    ("auto", 1.0),
    ("exact:workers=2", 10.0),
)
PROVEN = 1 + 1e-6
EVALUATIONS = 10, 100, 1000
BEST = 300_000
"""Evaluations of a search that is as good as the best known."""


def chosen(setting: str, count: int) -> list[Problem]:
    """Problems for testing, spread over GiPH's family in a setting, or over another family."""
    giph = setting not in FAMILIES
    family = FAMILIES["giph" if giph else setting]
    parameters = family.parameters(setting=setting) if giph else family.parameters()
    made = (one for one in family.generate(parameters, seed=0) if isinstance(one, Problem))
    test = [one for one in made if not giph or one.graph.attributes["split"] == "test"]
    rows = np.random.default_rng(0).permutation(len(test))[:count]
    return [test[row] for row in sorted(rows)]


def few(problems: list[Problem]) -> None:
    """Print ratios to the best known after so many evaluations."""
    judge = OBJECTIVES["makespan"]
    names = ("heft", "pilot-makespan:samples=0:refine=none", "anneal", "pilot-makespan")
    reached = {}
    for name in names:
        for count in EVALUATIONS if name in names[2:] else (10,):
            placer, budget = named_placer(name), Budget(None, count)
            results = [placer.place(problem, judge, budget=budget) for problem in problems]
            reached[name, count] = np.array([result.value for result in results])
    search = named_placer("anneal"), Budget(None, BEST)
    known = [search[0].place(problem, judge, budget=search[1]).value for problem in problems]
    best = np.min([known, *reached.values()], axis=0)
    lines = []
    for key, values in reached.items():
        ratio, same = values / best, values >= reached["heft", 10] * (1 - 1e-9)
        means = f"{ratio.mean():.4f}", f"{np.median(ratio):.4f}", f"{ratio.max():.3f}"
        lines.append((*key, *means, f"{same.mean():.0%}"))
    heads = ("placer", "evaluations", "mean", "median", "worst", "HEFT's answer")
    print(table(heads, lines, texts=6), end="")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--setting", default="multiple_networks")
    parser.add_argument("--few", action="store_true")
    asked = parser.parse_args()
    problems, judge = chosen(asked.setting, asked.problems), OBJECTIVES["makespan"]
    if asked.few:
        few(problems)
        return
    named_placer("auto").place(problems[0], judge, budget=Budget(0.1))  # compiles
    rows = {}
    for name, seconds in PLACERS:
        placer, budget = named_placer(name), Budget(seconds)
        results = [placer.place(problem, judge, budget=budget) for problem in problems]
        values = np.array([result.value for result in results])
        bounds = np.array([result.bound for result in results])
        rows[f"{name} in {1000 * seconds:g} ms"] = values, float(np.mean(values <= bounds * PROVEN))
    heft = rows["heft in 1000 ms"][0]
    best = np.min([values for values, _ in rows.values()], axis=0)
    lines = []
    for name, (values, proven) in rows.items():
        ratio = values / best
        title = name.removesuffix(" in 1000 ms") if "anneal" not in name else name
        means = f"{(values / heft).mean():.4f}", f"{ratio.mean():.4f}", f"{ratio.max():.3f}"
        lines.append((title, *means, f"{(ratio <= 1.01).mean():.0%}", f"{proven:.0%}"))
    heads = ("placer", "to HEFT, mean", "to the best known, mean", "worst", "within 1 %", "proven")
    print(table(heads, lines, texts=6), end="")


if __name__ == "__main__":
    main()
