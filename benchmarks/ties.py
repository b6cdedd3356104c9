"""What the order of equal ranks decides: HEFT on Montage workflows of WfCommons' recipe.

    python benchmarks/ties.py --saga PYTHON [--problems 24] [--draws 200]

The interpreter needs SAGA (``pip install anrg-saga``, best in an environment of its own), which
brings the recipe. Each row is a problem: its tasks, the largest number of tasks that have the same
rank, HEFT's makespans when tasks of equal rank come in a random order, and the makespans of the
placers. Problems on which the order of equal ranks changes the makespan by at most one per cent are
counted, and not shown.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from streamplace import Problem
from streamplace.io.registry import FORMATS
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget
from streamplace.scheduling.insertion import insert_all, plain_choice
from streamplace.scheduling.lists import TIE
from streamplace.scheduling.ranks import by_rank, upward
from streamplace.scheduling.tasks import tasks_of

MAKESPAN = OBJECTIVES["makespan"]
PLACERS = (
    ("heft", 1.0),
    ("heft:tries=16", 1.0),
    ("foresight", 1.0),
    ("anneal", 0.001),
    ("auto", 1.0),
)
MONTAGES = Path(__file__).with_name("montages.py")
LEAST = 1.01
"""Ratio of the longest to the shortest schedule drawn, above which a problem is shown."""


def montages(python: str, count: int) -> list[Problem]:
    """Problems of the recipe, of growing size."""
    command = [python, MONTAGES, str(count)]
    made = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    with tempfile.TemporaryDirectory() as folder:
        for number, line in enumerate(made.splitlines()):
            (Path(folder) / f"{number:03d}.json").write_text(line, "utf-8")
        return list(FORMATS["saga"].read(Path(folder)))


def largest_tie(problem: Problem) -> int:
    """Most tasks that have the same upward rank."""
    rank = upward(tasks_of(problem))
    return int(np.unique(np.rint(rank / (TIE * rank.max())), return_counts=True)[1].max())


def drawn(problem: Problem, draws: int) -> list[float]:
    """Makespans of HEFT's schedules when tasks of equal rank come in a random order."""
    tasks, rng = tasks_of(problem), np.random.default_rng(0)
    rank, choice = upward(tasks), plain_choice(tasks.n_tasks, True)
    orders = (by_rank(tasks, rank + TIE * rank.max() * rng.random(len(rank))) for _ in range(draws))
    return [float(insert_all(tasks, order, choice).finish.max()) for order in orders]


def row(problem: Problem, values: list[float]) -> list[str]:
    """Columns of a problem."""
    answers = [
        named_placer(name).place(problem, MAKESPAN, budget=Budget(seconds)).value
        for name, seconds in PLACERS
    ]
    facts = [problem.graph.name, str(problem.n_operators), str(largest_tie(problem))]
    return [*facts, *(f"{x:.0f}" for x in (min(values), median(values), max(values), *answers))]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--saga", required=True, help="interpreter that has SAGA")
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--draws", type=int, default=200, help="random orders of equal ranks")
    given = parser.parse_args()
    names = [f"{name} {1000 * s:g} ms" if name == "anneal" else name for name, s in PLACERS]
    head = ["", "tasks", "equal ranks", "least drawn", "median", "most drawn", *names]
    problems = montages(given.saga, given.problems)
    row(problems[0], drawn(problems[0], 1))  # compiles
    rows, alike = [head, ["---"] * len(head)], 0
    for problem in problems:
        values = drawn(problem, given.draws)
        if max(values) > LEAST * min(values):
            rows.append(row(problem, values))
        else:
            alike += 1
    print("\n".join(f"| {' | '.join(line)} |" for line in rows))
    print(f"\n{alike} of {len(problems)} problems: at most {LEAST - 1:.0%} between the draws")


if __name__ == "__main__":
    main()
