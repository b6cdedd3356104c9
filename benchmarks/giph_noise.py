"""GiPH under noise: Figure 4 of its paper, where times vary by up to a fifth.

Run ``python benchmarks/giph_noise.py -o out/`` (weights that are in ``out/`` already, also by
``giph.py``, are not trained again). Policies measure noisy passes when they walk and, where a row
says so, when they learn; their features are the expected times. Every computation and every
transfer of a measured pass takes its expected time times a factor that is uniform on [1 - σ, 1 + σ]
and is drawn anew for every measurement (appendix B.5). Prints the table and writes it as
``giph-noise.md``.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from giph import BY_NAME, EPOCHS, LEARNED, problems_of, trained, weights_of
from streamsim.passes import GIPH, makespans
from studies import Mapped, markdown, output_options, workers_of

from streamplace import Problem
from streamplace.model.arrays import Floats, Ints
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

MAKESPAN = OBJECTIVES["makespan"]
SIGMA = 0.2
POLICIES = ("giph", "giph-task-eft", "placeto")
WALKS = ("random", "eft", *POLICIES, *(f"{name}, trained with noise" for name in POLICIES))


def noisy(problem: Problem, places: Ints, sigma: float, rng: np.random.Generator) -> Floats:
    """Seconds [B] of one pass under each placement [B, N], measured under noise."""
    size, one = len(places), problem.one_pass
    work = rng.uniform(1 - sigma, 1 + sigma, (size, one.n_operators))
    send = rng.uniform(1 - sigma, 1 + sigma, (size, one.n_streams))
    return makespans(one, places, GIPH, work_factors=work, send_factors=send)


@dataclass
class Recording:
    """Measured placements, in order, and their measurements."""

    sigma: float
    rng: np.random.Generator
    places: list[Ints] = field(default_factory=list)
    seconds: list[Floats] = field(default_factory=list)

    def objective(self) -> Objective:
        """Makespan that measures so, and records."""
        return replace(MAKESPAN, evaluate=self._measured, ordered=False)

    def _measured(self, problem: Problem, placements: Ints) -> Floats:
        places = np.array(np.atleast_2d(placements), np.int32)
        self.places.append(places)
        self.seconds.append(noisy(problem, places, self.sigma, self.rng))
        return self.seconds[-1]

    def walk(self) -> tuple[Ints, Floats]:
        """Placements [T, N] and their measured seconds [T]."""
        return np.concatenate(self.places), np.concatenate(self.seconds)


def best_so_far(seconds: Floats) -> Ints:
    """Number of the placement of the least measurement up to each one."""
    best = np.zeros(len(seconds), np.int32)
    for t in range(1, len(seconds)):
        best[t] = t if seconds[t] < seconds[best[t - 1]] else best[t - 1]
    return best


def measured(problem: Problem, places: Ints) -> Floats:
    """Noisy seconds, drawn from the placements themselves, so that any order gives the same."""
    rows = np.ascontiguousarray(np.atleast_2d(places), np.int32)
    return noisy(problem, rows, SIGMA, np.random.default_rng(crc32(rows.tobytes())))


def walked(problem: Problem, folder: Path) -> dict[str, list[float]]:
    """Makespans that every policy ends at, over HEFT's.

    Without noise; under noise; and what was measured of that placement under noise. The first two
    are expected makespans of the placement whose measurement is the least.
    """
    heft = named_placer("heft").place(problem, MAKESPAN).value
    found = {}
    for name in WALKS:
        silent, _ = ended(problem, name, 0.0, folder)
        expected, seconds = ended(problem, name, SIGMA, folder)
        found[name] = [silent / heft, expected / heft, seconds / heft]
    return found


def ended(problem: Problem, name: str, sigma: float, folder: Path) -> tuple[float, float]:
    """Expected makespan, and the measured one, of the best placement of a walk as measured."""
    n = problem.n_operators
    recording = Recording(sigma, np.random.default_rng(n))
    placer = named_placer(placer_of(name, folder))
    placer.place(problem, recording.objective(), seed=n, budget=Budget(None, 1 + 2 * n))
    places, seconds = (part[: 1 + 2 * n] for part in recording.walk())
    best = best_so_far(seconds)[-1]
    return float(MAKESPAN.values(problem, places[best][None])[0]), float(seconds[best])


def placer_of(name: str, folder: Path) -> str:
    """Placer of a row."""
    policy, _, noise = name.partition(", ")
    if policy not in BY_NAME:
        return policy
    run = folder / (f"{policy}-noise" if noise else policy)
    return f"{BY_NAME[policy].model}:weights={run / 'best.safetensors'}"


def main(folder: Path, count: int, epochs: int, learned: int, by: Mapped) -> None:
    """Train, walk, write and print the table."""
    for name in POLICIES:
        trained(BY_NAME[name], folder, epochs, learned)
        problems = partial(problems_of, "train", learned)
        run, model = folder / f"{name}-noise", BY_NAME[name].model
        weights_of(run, model, problems, epochs, reward=measured)
    found = list(by(partial(walked, folder=folder), problems_of("test", count)))
    rows = []
    for name in WALKS:
        silent, expected, seconds = np.mean([one[name] for one in found], axis=0).tolist()
        rows.append(
            {"": name, "without noise": silent, "under noise": expected, "as measured": seconds}
        )
    title = f"Makespan × HEFT after 2 N steps, {len(found)} problems, {epochs} epochs on {learned}"
    text = markdown(rows, title)
    (folder / "giph-noise.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    given = output_options(
        __doc__,
        problems=(60, "to test with"),
        epochs=(EPOCHS, "of every training"),
        learned=(LEARNED, "to train with"),
    ).parse_args()
    main(given.output, given.problems, given.epochs, given.learned, workers_of(given))
