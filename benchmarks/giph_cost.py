"""GiPH told to save instead of to hurry: Figure 11 (right) and Figure 16 of its paper.

Run ``python benchmarks/giph_cost.py -o out/`` (a few minutes; what is trained in ``out/`` already
is taken from there). What a pass costs is what all its tasks and transfers take together. GiPH
learns that cost, and its own makespan; beside it as many random placements, HEFT's schedule, and
search. Prints the table and writes it as ``giph-cost.md``.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from giph import EPOCHS, LEARNED, MULTIPLE, problems_of, weights_of
from numpy.typing import NDArray
from streamsim.passes.sending import sending_times
from studies import markdown

from streamplace import Problem
from streamplace.objectives.registry import OBJECTIVES, objective
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget
from streamplace.scheduling.tasks import tasks_of

COST = "seconds-spent"
POINTS = (0.0, 0.5, 1.0, 2.0)
"""Steps per task at which walks are looked at."""
BEST = Budget(None, 100_000)


@objective(COST, sense="min", unit="s", limit=0.0)
def seconds_spent(problem: Problem, placements: NDArray[np.int32]) -> NDArray[np.float64]:
    """Seconds of all tasks and all transfers of a pass together."""
    tasks, rows = tasks_of(problem), np.atleast_2d(placements)
    source, target = rows[:, tasks.source], rows[:, tasks.target]
    latency, wire = tasks.latency[source, target], tasks.wire[source, target]
    sending = sending_times(latency, tasks.size, wire, tasks.fixed_s)
    sending = np.where(source == target, 0.0, sending)
    working = tasks.work[np.arange(tasks.n_tasks), rows]
    total: NDArray[np.float64] = working.sum(axis=1) + sending.sum(axis=1)
    return total


def walked(placer: str, problem: Problem) -> list[float]:
    """Cost after numbers of steps per task; all walks start at the same random placement."""
    n, judge = problem.n_operators, OBJECTIVES[COST]
    result = named_placer(placer).place(problem, judge, seed=n, budget=Budget(None, 1 + 2 * n))
    reached = np.full(1 + 2 * n, result.value)
    for step, after in zip(result.trace or (), (*(result.trace or ())[1:], None), strict=True):
        end = len(reached) if after is None else after.evaluations - 1
        reached[step.evaluations - 1 : end] = step.value
    return [float(reached[round(point * n)]) for point in POINTS]


def main(folder: Path, count: int, epochs: int) -> None:
    """Train both, walk, write and print the table."""
    judge, haste = OBJECTIVES[COST], OBJECTIVES["makespan"]
    learned = partial(problems_of, MULTIPLE, "train", LEARNED)
    giph = {
        goal: f"giph:weights={weights_of(folder / goal, 'giph', learned, epochs, objective=goal)}"
        for goal in (COST, "makespan")
    }
    problems = problems_of(MULTIPLE, "test", count)
    best = [named_placer("anneal").place(one, judge, budget=BEST).value for one in problems]
    walks = {
        "random": "random",
        "giph, trained for the makespan": giph["makespan"],
        "giph, trained for the cost": giph[COST],
        "anneal, as many evaluations": "anneal",
    }
    rows = []
    for name, placer in walks.items():
        ratios = np.array([walked(placer, one) for one in problems]) / np.array(best)[:, None]
        means = dict(zip(POINTS, ratios.mean(axis=0).tolist(), strict=True))
        rows.append({"": name} | {f"{point:g} N steps": mean for point, mean in means.items()})
    heft = [
        judge.value(one, named_placer("heft").place(one, haste).placement) / least
        for one, least in zip(problems, best, strict=True)
    ]
    rows.append({"": "heft"} | {f"{point:g} N steps": float(np.mean(heft)) for point in POINTS})
    text = markdown(rows, "Cost as a multiple of the least known")
    (folder / "giph-cost.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    parser.add_argument("--problems", type=int, default=60, help="to test with")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of every training")
    given = parser.parse_args()
    main(given.output, given.problems, given.epochs)
