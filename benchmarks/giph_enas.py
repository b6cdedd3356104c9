"""GiPH on deep-learning graphs: Figure 7 (a) of its paper.

Run ``python benchmarks/giph_enas.py -o out/`` (what is trained in ``out/`` already is taken from
there). Language models of ENAS cells in 40 groups on one network of eight devices, half of them to
train with. Prints mean SLRs over the steps of a walk, and writes them as ``giph-enas.md``.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from giph import EPOCHS, weights_of
from giph_noise import MAKESPAN, Recording, best_so_far
from studies import Mapped, markdown, workers_of, workers_options

from streamplace import Problem
from streamplace.families.registry import FAMILIES
from streamplace.papers.families.enas_ptb import EnasPtb
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

POLICIES = ("giph", "giph-task-eft", "placeto")
WALKS = ("random", "eft", *POLICIES, "heft")
POINTS = (0.0, 0.5, 1.0, 2.0)
"""Steps per task at which walks are looked at."""


def problems_of(split: str, count: int) -> list[Problem]:
    """So many problems, spread over the cell designs."""
    made = FAMILIES["enas-ptb"].generate(EnasPtb(), 0)
    those = [one for one in made if one.graph.attributes["split"] == split]
    return those[:: len(those) // count][:count]


def walked(problem: Problem, folder: Path) -> dict[str, list[float]]:
    """SLR at the points of every walk; all begin alike."""
    found, n = {}, problem.n_operators
    for name in WALKS:
        weights = f":weights={folder / f'{name}-enas' / 'best.safetensors'}"
        placer = named_placer(name + weights if name in POLICIES else name)
        recording = Recording(0.0, np.random.default_rng(n))
        objective = MAKESPAN if name == "heft" else recording.objective()
        value = placer.place(problem, objective, seed=n, budget=Budget(None, 1 + 2 * n)).value
        values = [value] * len(POINTS)
        if name != "heft":
            seconds = recording.walk()[1][: 1 + 2 * n]
            best = seconds[best_so_far(seconds)]
            values = [float(best[min(round(point * n), len(best) - 1)]) for point in POINTS]
        found[name] = [MAKESPAN.measures(problem, value)["slr"] for value in values]
    return found


def table(found: list[dict[str, list[float]]]) -> str:
    """Figure 7 (a)."""
    rows, heft = [], np.array([slr["heft"] for slr in found])
    for name in WALKS:
        slr = np.array([walks[name] for walks in found])
        means = dict(
            zip((f"{p:g} N steps" for p in POINTS), slr.mean(axis=0).tolist(), strict=True)
        )
        rows.append({"": name} | means | {"end × HEFT": float((slr / heft)[:, -1].mean())})
    return markdown(rows, f"Figure 7 (a): mean SLR, {len(found)} graphs")


def main(folder: Path, count: int, learned: int, epochs: int, by: Mapped) -> None:
    """Train, walk, write and print the table."""
    for name in POLICIES:
        problems = partial(problems_of, "train", learned)
        weights_of(folder / f"{name}-enas", name, problems, epochs)
    found = list(by(partial(walked, folder=folder), problems_of("test", count)))
    text = table(found)
    (folder / "giph-enas.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    parser.add_argument("--problems", type=int, default=150, help="to test with")
    parser.add_argument("--learned", type=int, default=150, help="to train with")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of every training")
    workers_options(parser)
    given = parser.parse_args()
    main(given.output, given.problems, given.learned, given.epochs, workers_of(given))
