"""GiPH beside the methods that its paper compares: Figures 4, 6 and 9, and Table 6.

Run ``python benchmarks/giph.py -o out/`` (some five minutes on two idle cores, most of them for
training; weights that are in ``out/`` already are not trained again). Writes ``giph.json`` and
``giph.md``, and prints the tables.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from studies import Mapped, markdown, output_options, workers_of

from streamplace import Problem, train
from streamplace.families.registry import FAMILIES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.cav import Cav
from streamplace.papers.families.giph import Giph
from streamplace.papers.families.giph_adaptive import GiphAdaptive
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

MAKESPAN = OBJECTIVES["makespan"]
STEPS = np.array([0, 0.5, 1, 2])
"""Points of a walk, in steps per task."""
EPOCHS, LEARNED, BATCH = 8, 60, 4
"""Of every training: epochs, problems, and problems in a step."""
EPOCHS_OF_PAPER = 4
"""Epochs by the preset ``paper``, of which a step has one problem: the text has 200 episodes."""
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy to be trained: a model with its options and preset."""

    name: str
    model: str = "giph"
    options: str = ""
    preset: str = "fast"


VARIANTS = (
    Variant("giph"),
    Variant("giph-ne", options='form = "no-edges"'),
    Variant("giph-ne-pol", options='form = "plain"'),
    Variant("graphsage-ne", options='form = "sage"'),
    Variant("giph-task-eft", "giph-task-eft"),
    Variant("placeto", "placeto"),
    Variant("giph, paper's preset", preset="paper"),
    Variant("giph-task-eft, paper's preset", "giph-task-eft", preset="paper"),
)
BY_NAME = {variant.name: variant for variant in VARIANTS}
SEARCHES = ("random", "eft", "giph-task-eft", "placeto", "giph")
PAPERS = tuple(v.name for v in VARIANTS if v.preset == "paper")
RIVALS = ("giph", *(v.name for v in VARIANTS[1:5]), *PAPERS, "heft", "anneal")
PUBLISHED = {
    "giph-ne": "75 / 2 / 23",
    "giph-ne-pol": "61 / 6 / 33",
    "giph-task-eft": "82 / 3 / 15",
    "heft": "59 / 5 / 36",
}
"""Table 6: GiPH better than, equal to, worse than the others, in per cent."""


def problems_of(split: str, count: int) -> list[Problem]:
    """So many problems, spread over the task graphs of the family's default seed."""
    found = FAMILIES["giph"].generate(Giph("multiple_networks", max(count, 120)), 0)
    of_split = [one for one in found if one.graph.attributes["split"] == split]
    return of_split[:: len(of_split) // count][:count]


def weights_of(
    run: Path,
    model: str,
    problems: Callable[[], list[Problem]],
    epochs: int,
    options: str = "",
    preset: str = "fast",
    **rest: Any,
) -> Path:
    """Weights of a model that is trained, unless they are there."""
    if not (run / "best.safetensors").exists():
        run.parent.mkdir(parents=True, exist_ok=True)
        if preset == "fast":
            rest["config"] = run.with_suffix(".toml")
            text = f"[training]\nbatch = {BATCH}\n[model]\n{options}\n"
            rest["config"].write_text(text, "utf-8")
        train(model, problems(), run, preset=preset, epochs=epochs, **rest)
    return run / "best.safetensors"


def trained(variant: Variant, folder: Path, epochs: int, learned: int = LEARNED) -> None:
    """Train a variant, unless it is there."""
    problems = partial(problems_of, "train", learned)
    epochs = epochs if variant.preset == "fast" else EPOCHS_OF_PAPER
    run, model = folder / variant.name, variant.model
    weights_of(run, model, problems, epochs, variant.options, variant.preset)


def placer_of(name: str, folder: Path) -> str:
    """Placer of a variant, with its weights; any other name is a placer's."""
    if name not in BY_NAME:
        return name
    return f"{BY_NAME[name].model}:weights={folder / name / 'best.safetensors'}"


def searched(problem: Problem, names: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """SLR of each method after numbers of steps; all walks start at the same random placement."""
    n, seed = problem.n_operators, problem.n_operators
    rows = []
    for name in names:
        budget = Budget(None, 1 + 2 * n)
        placer = named_placer(placer_of(name, folder))
        result = placer.place(problem, MAKESPAN, seed=seed, budget=budget)
        best = np.full(1 + 2 * n, np.nan)
        for step in result.trace or ():
            best[step.evaluations - 1 :] = step.value
        best[np.isnan(best)] = result.value  # of placers that answer at once
        points = best[np.rint(STEPS * n).astype(int)]
        slr = [MAKESPAN.measures(problem, value)["slr"] for value in points]
        rows.append({"method": name, "slr": slr, **problem.graph.attributes})
    return rows


def all_of(function: Any, problems: Iterable[Problem], by: Mapped) -> list[dict[str, Any]]:
    """Rows of all problems."""
    return [row for rows in by(function, problems) for row in rows]


def studies(folder: Path, count: int, by: Mapped) -> dict[str, list[dict[str, Any]]]:
    """Every walk of every study, a row each."""
    multiple = dict.fromkeys((*SEARCHES, *RIVALS))
    changing = (
        p for p in FAMILIES["giph-adaptive"].generate(GiphAdaptive(programs=count // 10), 0)
    )
    cars = [p for p in FAMILIES["cav"].generate(Cav(), 0)][:: max(1, 900 // count)]
    search = partial(searched, folder=folder)
    return {
        "networks": all_of(partial(search, names=tuple(multiple)), problems_of("test", count), by),
        "changing": all_of(partial(search, names=(*SEARCHES, "heft")), changing, by),
        "cars": all_of(
            partial(search, names=("random", "eft", "giph-task-eft", "giph", "heft", "anneal")),
            cars,
            by,
        ),
    }


def means(rows: list[dict[str, Any]], method: str) -> np.ndarray:
    """Mean SLR over the steps."""
    return np.mean([row["slr"] for row in rows if row["method"] == method], axis=0)


def finals(rows: list[dict[str, Any]], method: str) -> np.ndarray:
    """SLR in the end, problem by problem."""
    return np.array([row["slr"][-1] for row in rows if row["method"] == method])


def table_of_search(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figure 4 and 9: mean SLR after so many steps per task, and the end beside HEFT's."""
    found = []
    for name in dict.fromkeys(row["method"] for row in rows):
        curve, ends = means(rows, name), finals(rows, name)
        row = {"": name} | {f"{at:g} N steps": x for at, x in zip(STEPS, curve, strict=True)}
        found.append(row | {"end × HEFT": (ends / finals(rows, "heft")).mean()})
    return found


def table_of_changes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figure 6: mean SLR in the end over HEFT's, by the number of changes so far."""
    found = []
    for name in SEARCHES:
        row: dict[str, Any] = {"": name}
        for low, high in ((0, 5), (5, 10), (10, 15), (15, 20)):
            own = [one for one in rows if low < int(one["step"]) <= high]
            ratio = finals(own, name) / finals(own, "heft")
            row[f"changes {low + 1} to {high}"] = ratio.mean()
        found.append(row)
    return found


def table_of_pairs(
    rows: list[dict[str, Any]], rivals: Sequence[str] = RIVALS[1:]
) -> list[dict[str, Any]]:
    """Table 6: GiPH better than, equal to and worse than the others, in per cent."""
    mine, found = finals(rows, "giph"), []
    for name in rivals:
        other = finals(rows, name)
        won, lost = np.mean(mine < other - TIE), np.mean(mine > other + TIE)
        equal = np.mean(np.abs(mine - other) <= TIE)
        pairs = f"{100 * won:.0f} / {100 * equal:.0f} / {100 * lost:.0f}"
        slr = {"mean SLR": other.mean(), "its own × HEFT": (other / finals(rows, "heft")).mean()}
        found.append(
            {"GiPH against": name, "ours": pairs, "paper": PUBLISHED.get(name, "–"), **slr}
        )
    return found


def main(folder: Path, count: int, epochs: int, by: Mapped) -> None:
    """Train and walk; write and print the tables."""
    for variant in VARIANTS:
        trained(variant, folder, epochs)
    rows = studies(folder, count, by)
    tables = {
        "Figure 4": table_of_search(rows["networks"]),
        "Figure 6": table_of_changes(rows["changing"]),
        "Figure 9": table_of_search(rows["cars"]),
        "Table 6": table_of_pairs(rows["networks"]),
    }
    (folder / "giph.json").write_text(json.dumps(rows), "utf-8")
    text = "\n".join(markdown(table, title) for title, table in tables.items())
    (folder / "giph.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    given = output_options(
        __doc__, problems=(60, "to test with, of each study"), epochs=(EPOCHS, "of every training")
    ).parse_args()
    main(given.output, given.problems, given.epochs, workers_of(given))
