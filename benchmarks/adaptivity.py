"""How placements follow a network that changes: GiPH's Figure 6.

Run ``python benchmarks/adaptivity.py -o out/`` (some minutes on two cores). On the sequences of
``giph-adaptive``, each placer places anew after every change of the network, or goes on from its
own last placement within few evaluations. Writes ``adaptivity.md``, and prints the table.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from studies import Mapped, markdown, workers_of, workers_options

from streamplace import Placement, Problem, Relocation, place
from streamplace.families.registry import FAMILIES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.giph_adaptive import GiphAdaptive
from streamplace.placers.registry import PLACERS, Budget

MAKESPAN = OBJECTIVES["makespan"]
ENDLESS_S = 1e12
"""Nothing moves unasked that takes so long to start."""
WORTH_S = 3.0
"""Less than a hundredth of a pass of giph-adaptive."""
EVALUATIONS = 100

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
    ratio: float
    moved: float


def anew(placer: str) -> Answer:
    """Let a placer answer, whatever ran before."""
    return lambda problem, last: place(problem, placer=placer).placement


def following(worth: float, evaluations: int = EVALUATIONS, placer: str = "pilot") -> Answer:
    """Search from the last placement, in which a task moves where that gains so many seconds."""

    def answer(problem: Problem, last: Placement) -> Placement:
        budget, move = Budget(None, evaluations), Relocation(last, 1, startup=worth)
        return place(problem, placer=placer, relocation=move, budget=budget).placement

    return answer


def improving(problem: Problem, last: Placement) -> Placement:
    """GiPH from the last placement; tasks whose device is gone go where they are soonest done."""
    forced = following(ENDLESS_S, 1, "anneal")(problem, last)
    giph = PLACERS["giph"].with_options(start=(forced,))
    return giph.place(problem, MAKESPAN, budget=Budget(None, EVALUATIONS)).placement


ANSWERS: dict[str, Answer] = {
    "heft": anew("heft"),
    "giph from the last, 100 evaluations": improving,
    "pilot from the last, 100 evaluations": following(0.0),
    "the same, where a move must gain 3 s": following(WORTH_S),
    "auto": anew("auto"),
}


def follow(problems: list[Problem]) -> list[Step]:
    """Follow one task graph from change to change; all begin with HEFT's placement."""
    first = place(problems[0], placer="heft").placement
    last, steps = dict.fromkeys(ANSWERS, first), []
    for problem in problems[1:]:
        now = {name: answer(problem, last[name]) for name, answer in ANSWERS.items()}
        heft = MAKESPAN.value(problem, now["heft"])
        for name, placement in now.items():
            moved = np.mean([placement[v] != last[name][v] for v in placement])
            ratio = MAKESPAN.value(problem, placement) / heft
            steps.append(Step(name, ratio, float(moved)))
        last = now
    return steps


def sequences(problems: Iterable[Problem]) -> Iterator[list[Problem]]:
    """Problems of one task graph after the other."""
    for _, changing in groupby(problems, lambda problem: problem.graph.attributes["program"]):
        yield list(changing)


def table_of_changes(steps: list[Step]) -> list[dict[str, Any]]:
    """Means per placer over all changes."""
    rows = []
    for name in ANSWERS:
        own = [(step.ratio, step.moved) for step in steps if step.placer == name]
        ratio, moved = np.mean(own, axis=0).tolist()
        rows.append({"placer": name, "× HEFT": ratio, "tasks moved": moved})
    return rows


def main(folder: Path, programs: int, by: Mapped) -> None:
    """Follow all sequences, write and print the table."""
    graphs = FAMILIES["giph-adaptive"].generate(GiphAdaptive(programs=programs), 0)
    steps = [step for own in by(follow, sequences(graphs)) for step in own]
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(table_of_changes(steps))
    (folder / "adaptivity.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How placements follow a network that changes.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    parser.add_argument("--programs", type=int, default=20, help="task graphs of giph-adaptive")
    workers_options(parser)
    options = parser.parse_args()
    main(options.output, options.programs, workers_of(options))
