"""How placements follow a network that changes, and what moving costs: GiPH's Figures 6 and 11.

Run ``python benchmarks/adaptivity.py -o out/`` (some minutes on two cores). First the sequences of
``giph-adaptive``: after every change of the network each placer places anew, or goes on from its
own last placement within few evaluations. Then the cars of ``cav``, looked at every ten seconds:
what moves, and for how many seconds, when the pipeline runs so often. Writes ``adaptivity.md``, and
prints the tables.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from studies import Mapped, markdown, workers_of, workers_options

from streamplace import Placement, Problem, Relocation, place, simulate
from streamplace.families.registry import FAMILIES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.cav import EVERY_S, Cav
from streamplace.papers.families.giph_adaptive import GiphAdaptive
from streamplace.placers.registry import PLACERS, USUAL_BUDGET, Budget

MAKESPAN = OBJECTIVES["makespan"]
FREQUENCIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""Passes per second of the cars' pipelines."""
ENDLESS_S = 1e12
"""Nothing moves unasked that takes so long to start."""
WORTH_S, LITTLE_S = 10.0, 3.0
"""A fiftieth of a pass of giph-adaptive, and less than a hundredth."""
EVALUATIONS = 10_000
WALK = 100

Answer = Callable[[Problem, Placement], Placement]


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one placer after one change.

    Attributes
    ----------
    ratio
        Its makespan as a multiple of HEFT's, which is that of the schedule length ratios, too.
    moved
        Share of the tasks that run elsewhere than in its own placement before.
    """

    placer: str
    change: int
    ratio: float
    moved: float


@dataclass(frozen=True, slots=True)
class Drive:
    """Result of a placer on one snapshot of a car.

    Attributes
    ----------
    frequency
        Passes per second over which moving was to pay off; None where it did not count.
    makespan, relocation
        Seconds.
    moved
        Tasks.
    """

    placer: str
    frequency: float | None
    makespan: float
    relocation: float
    moved: int


def random(problem: Problem, last: Placement) -> Placement:
    """A single random placement, another one after every change."""
    seed = int(problem.graph.attributes["step"])
    return place(problem, placer="random", seed=seed, budget=Budget(None, 1)).placement


def anew(placer: str) -> Answer:
    """Let a placer answer, whatever ran before."""
    return lambda problem, last: place(problem, placer=placer).placement


def following(evaluations: int, worth: float = 0.0, placer: str = "anneal") -> Answer:
    """Search from the last placement, in which a task moves where that gains so many seconds."""

    def answer(problem: Problem, last: Placement) -> Placement:
        budget, counted = Budget(None, evaluations), Relocation(last, 1, startup=worth)
        return place(problem, placer=placer, relocation=counted, budget=budget).placement

    return answer


def walking(problem: Problem, last: Placement) -> Placement:
    """GiPH from the last placement, in which tasks move that have to."""
    giph = PLACERS["giph"].with_options(start=(forced(problem, last),))
    return giph.place(problem, MAKESPAN, budget=Budget(None, WALK)).placement


def forced(problem: Problem, last: Placement) -> Placement:
    """Tasks whose device is gone go where they are soonest done; no other moves."""
    return following(1, ENDLESS_S)(problem, last)


ANSWERS: dict[str, Answer] = {
    "random placements": random,
    "only what has to move": forced,
    "heft": anew("heft"),
    "foresight": anew("foresight"),
    "anneal from the last, 10 evaluations": following(10),
    "anneal from the last, 100 evaluations": following(100),
    "anneal from the last, 1000 evaluations": following(1000),
    "the same 1000, a move must gain 10 s": following(1000, WORTH_S),
    "pilot from the last, 10 evaluations": following(10, placer="pilot"),
    "pilot from the last, 100 evaluations": following(100, placer="pilot"),
    "the same 100, a move must gain 3 s": following(100, LITTLE_S, "pilot"),
    "giph from the last, 100 evaluations": walking,
    "auto": anew("auto"),
}


def walk(problems: list[Problem]) -> list[Step]:
    """Follow one task graph from change to change; all begin with HEFT's placement."""
    first = place(problems[0], placer="heft").placement
    last, steps = dict.fromkeys(ANSWERS, first), []
    for change, problem in enumerate(problems[1:], 1):
        found = {name: answer(problem, last[name]) for name, answer in ANSWERS.items()}
        heft = MAKESPAN.value(problem, found["heft"])
        for name, placement in found.items():
            moved = np.mean([placement[v] != last[name][v] for v in placement])
            ratio = MAKESPAN.value(problem, placement) / heft
            steps.append(Step(name, change, ratio, float(moved)))
        last = found
    return steps


def drive(problems: list[Problem]) -> list[Drive]:
    """Follow one car from snapshot to snapshot; all begin with HEFT's placement."""
    found, first = [], place(problems[0], placer="heft").placement
    for placer, frequency in (("heft", None), ("auto", None), *(("auto", f) for f in FREQUENCIES)):
        last = first
        for problem in problems[1:]:
            from_there = Relocation(last, EVERY_S * (frequency or 1.0))
            counted = None if frequency is None else from_there
            budget = USUAL_BUDGET if counted is None else Budget(evaluations=EVALUATIONS)
            last = place(problem, placer=placer, relocation=counted, budget=budget).placement
            told = simulate(problem, last, relocation=from_there).headline()
            way = told["relocation"]
            facts = told["makespan"], way["seconds"], len(way["moved"])
            found.append(Drive(placer, frequency, *facts))
    return found


def sequences(problems: Iterable[Problem], attribute: str) -> Iterator[list[Problem]]:
    """Problems of one task graph, one car, after the other."""
    for _, found in groupby(problems, lambda problem: problem.graph.attributes[attribute]):
        yield list(found)


def table_of_changes(steps: list[Step]) -> list[dict[str, Any]]:
    """Means per placer: over all changes, over the first and last five, and what moved."""
    last = max(step.change for step in steps)
    rows = []
    for name in ANSWERS:
        own = [step for step in steps if step.placer == name]
        begin = [step.ratio for step in own if step.change <= 5]
        end = [step.ratio for step in own if step.change > last - 5]
        rows.append(
            {
                "placer": name,
                "× HEFT": float(np.mean([step.ratio for step in own])),
                "first five changes": float(np.mean(begin)),
                "last five": float(np.mean(end)),
                "tasks moved": float(np.mean([step.moved for step in own])),
            }
        )
    return rows


def table_of_drives(drives: list[Drive]) -> list[dict[str, Any]]:
    """Means per placer and frequency; the makespan as a multiple of that of auto anew."""
    by_way: dict[tuple[str, float | None], list[Drive]] = defaultdict(list)
    for one in drives:
        by_way[one.placer, one.frequency].append(one)
    best = np.array([one.makespan for one in by_way["auto", None]])
    rows = []
    for (placer, frequency), own in by_way.items():
        ratio = np.array([one.makespan for one in own]) / best
        counted = "without cost of moving" if frequency is None else f"{frequency:g} passes/s"
        rows.append(
            {
                "placer": f"{placer}, {counted}",
                "makespan × auto's": float(ratio.mean()),
                "tasks moved": float(np.mean([one.moved for one in own])),
                "relocation in s": float(np.mean([one.relocation for one in own])),
            }
        )
    return rows


def main(folder: Path, programs: int, cars: int, by: Mapped) -> None:
    """Follow all sequences, write and print the tables."""
    graphs = FAMILIES["giph-adaptive"].generate(GiphAdaptive(programs=programs), 0)
    steps = [step for found in by(walk, sequences(graphs, "program")) for step in found]
    snapshots = FAMILIES["cav"].generate(Cav(vehicles=cars), 0)
    drives = [one for found in by(drive, sequences(snapshots, "vehicle")) for one in found]
    folder.mkdir(parents=True, exist_ok=True)
    text = f"{markdown(table_of_changes(steps))}\n{markdown(table_of_drives(drives))}"
    (folder / "adaptivity.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How placements follow a network that changes.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    parser.add_argument("--programs", type=int, default=20, help="task graphs of giph-adaptive")
    parser.add_argument("--cars", type=int, default=90, help="vehicles of cav")
    workers_options(parser)
    given = parser.parse_args()
    main(given.output, given.programs, given.cars, workers_of(given))
