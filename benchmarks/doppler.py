"""Doppler's Tables 2 to 4, Figure 3 and its simulator against real passes, at a size for two cores.

Run ``python benchmarks/doppler.py -o out/`` (an hour or so; fewer ``--epochs`` make it shorter). It
trains both policies, and either without the other, on each of the paper's four graphs; fine-tunes
those of the small graphs on the large ones; then measures real passes on a local Ray, which the
last stage learns from. What is trained already is not trained again. Writes ``doppler.json`` and
``doppler.md``, and prints the tables.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from studies import markdown

from streamplace import Problem, place, train
from streamplace.engines.ray.passes import RayPasses
from streamplace.families.registry import FAMILIES
from streamplace.model.problem import random_placements
from streamplace.objectives.registry import named_objective
from streamplace.papers.families.chainmm import ChainMM
from streamplace.placers.registry import Budget

LINKS = "makespan:preset=doppler"
GRAPHS = ("chainmm", "ffnn", "llama-block", "llama-layer")
VARIANTS = {
    "both policies": "",
    "SEL alone": 'place = "earliest"\n',
    "PLC alone": 'select = "critical-path"\n',
}
OTHERS = {
    "1 GPU": ("single", 1),
    "critical-path": ("critical-path", 50),
    "enumerative": ("enumerative", 1),
    "heft": ("heft", 1),
    "placeto, 1,000 evaluations": ("placeto", 1_000),
    "anneal, 20,000 evaluations": ("anneal", 20_000),
}
"""Placers and evaluations."""
SAMPLES = 256
EVALUATIONS = 20_000
PROOF_S = 30.0
TRANSFERS = [(a, b) for b in GRAPHS[2:] for a in ("ffnn", "chainmm")]
SMALL = ChainMM(shards=1, devices=2)
"""Eighteen tasks on two devices, of which a real pass is a second or two."""
COMPARED = 40
TURNS = 7
STAGES = {
    "real alone": (0, 0),
    "imitation, real": (1, 0),
    "simulated, real": (0, 1),
    "imitation, simulated, real": (1, 1),
}
SHORT = 4
"""Epochs of the first two stages on the small graph."""


def problem_of(family: str) -> Problem:
    """The paper's graph on four GPUs."""
    known = FAMILIES[family]
    return next(iter(known.generate(known.parameters(), 0)))


def trained(folder: Path, problem: Problem, options: str, **rest: Any) -> Path:
    """Weights of a run, which is made unless it is there; ``options`` are lines of TOML."""
    weights = folder / "best.safetensors"
    if not (folder / "history.jsonl").exists() or not weights.exists():
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "config.toml"
        config.write_text(options, "utf-8")
        train("doppler", [problem], folder, config=config, objective=LINKS, **rest)
    return weights


def milliseconds(problem: Problem, placer: str, **options: Any) -> float:
    """One pass under a placer's answer."""
    return 1e3 * place(problem, placer=placer, objective=LINKS, **options).value


def learned(problem: Problem, weights: Path) -> dict[str, float]:
    """Milliseconds of the greedy placement, and of the best of it and samples."""
    return {
        "greedy": milliseconds(problem, f"doppler:weights={weights}"),
        "best": milliseconds(problem, f"doppler:weights={weights}:samples={SAMPLES}"),
    }


def table_of_placers(folder: Path, epochs: int) -> list[dict[str, Any]]:
    """Tables 2 and 3: a row per graph."""
    rows = []
    for family in GRAPHS:
        problem = problem_of(family)
        row: dict[str, Any] = {"graph": family}
        for name, (placer, evaluations) in OTHERS.items():
            row[name] = milliseconds(problem, placer, budget=Budget(None, evaluations))
        proof = place(problem, placer="exact", objective=LINKS, budget=Budget(seconds=PROOF_S))
        row["exact"] = 1e3 * proof.value
        for name, options in VARIANTS.items():
            run = folder / f"{family}, {name}"
            found = learned(problem, trained(run, problem, f"[model]\n{options}", epochs=epochs))
            best = json.loads((run / "history.jsonl").read_text("utf-8").splitlines()[-1])["best"]
            found["in training"] = 1e3 * (named_objective(LINKS).bound(problem) or 0.0) / best
            row |= {f"{name}, {way}": value for way, value in found.items()}
        row["bound"] = 1e3 * (proof.bound or 0.0)
        rows.append(row)
        print(row, flush=True)
    return rows


def table_of_transfers(folder: Path, epochs: int) -> list[dict[str, Any]]:
    """Table 4: weights of one graph on another, at once and after a third and two thirds."""
    rows = []
    for source, target in TRANSFERS:
        weights = folder / f"{source}, both policies" / "best.safetensors"
        problem = problem_of(target)
        row: dict[str, Any] = {"learned on": source, "placed": target}
        row["zero-shot"] = learned(problem, weights)["best"]
        for share in (1, 2):
            run = folder / f"{source} to {target}, {share}"
            more = max(1, share * epochs // 3)
            again = trained(run, problem, "", start=weights, epochs=more)
            row[f"{more} epochs"] = learned(problem, again)["best"]
        rows.append(row)
        print(row, flush=True)
    return rows


def compared(problem: Problem, measure: RayPasses) -> dict[str, Any]:
    """Seconds of placements from good to random, simulated, and measured in any order."""
    rng = np.random.default_rng(0)
    good = place(problem, placer="anneal", objective=LINKS, budget=Budget(None, EVALUATIONS))
    tried = np.tile(good.placement.index, (COMPARED, 1))
    others = random_placements(problem, COMPARED, rng)
    moved = rng.random(tried.shape) < np.linspace(0, 1, COMPARED)[:, None]
    tried = rng.permutation(np.where(moved, others, tried))
    simulated, real = named_objective(LINKS).values(problem, tried), measure(problem, tried)
    ranks = [np.argsort(np.argsort(values)) for values in (simulated, real)]
    return {
        "simulated": simulated.tolist(),
        "measured": real.tolist(),
        "pearson": float(np.corrcoef(simulated, real)[0, 1]),
        "spearman": float(np.corrcoef(*ranks)[0, 1]),
    }


def stages(
    folder: Path, problem: Problem, measure: RayPasses, epochs: int
) -> dict[str, dict[str, Any]]:
    """Figure 3: the last stage after every combination of the first two."""
    found = {}
    for name, (imitates, simulates) in STAGES.items():
        weights = None
        if imitates or simulates:
            options = f"[model]\nimitation = {SHORT * imitates}\n"
            run = folder / f"before {name}"
            length = SHORT * (imitates + simulates)
            weights = trained(run, problem, options, epochs=length)
        options = "[training]\nlearning_rate = 1e-3\n[model]\nimitation = 0\nsteps = 2\n"
        run = folder / name
        last = trained(
            run,
            problem,
            f"{options}episodes = 4\n",
            start=weights,
            reward=measure,
            epochs=epochs,
        )
        bound = named_objective(LINKS).bound(problem)
        lines = map(json.loads, (run / "history.jsonl").read_text("utf-8").splitlines())
        found[name] = {"curve": [bound / line["reward"] for line in lines], "weights": str(last)}
        print(name, found[name], flush=True)
    return found


def table_of_stages(problem: Problem, found: dict[str, Any], measure: RayPasses) -> Any:
    """Rows of Figure 3; all answers are measured in turn, so that all meet the same disturbance."""
    placers = {name: f"doppler:weights={one['weights']}" for name, one in found.items()}
    placers |= {name: name for name in ("critical-path", "enumerative", "anneal")}
    budget = Budget(None, EVALUATIONS)
    answers = np.array(
        [
            place(problem, placer=placer, objective=LINKS, budget=budget).placement.index
            for placer in placers.values()
        ]
    )
    real = np.median([measure(problem, answers) for _ in range(TURNS)], axis=0)
    simulated = named_objective(LINKS).values(problem, answers)
    rows = []
    for i, name in enumerate(placers):
        curve = found[name]["curve"] if name in found else []
        ends = {"first epoch": 1e3 * curve[0], "last epoch": 1e3 * curve[-1]} if curve else {}
        answer = {"its answer, measured": 1e3 * real[i], "simulated": 1e3 * simulated[i]}
        rows.append({"stages": name, **ends, **answer})
    return rows


def tables(folder: Path, epochs: int, real_epochs: int) -> Iterator[tuple[str, Any]]:
    """All results, one after the other."""
    problem = next(iter(FAMILIES["chainmm"].generate(SMALL, 0)))
    with RayPasses([problem]) as measure:
        yield "real", compared(problem, measure)
        found = stages(folder, problem, measure, real_epochs)
        yield "curves", found
        yield "stages", table_of_stages(problem, found, measure)
    yield "placers", table_of_placers(folder, epochs)
    yield "transfers", table_of_transfers(folder, epochs)


def main(folder: Path, epochs: int, real_epochs: int) -> None:
    """Train, place and measure; write and print the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    found = dict(tables(folder, epochs, real_epochs))
    (folder / "doppler.json").write_text(json.dumps(found), "utf-8")
    text = "\n".join(markdown(found[name], digits=2) for name in ("placers", "transfers", "stages"))
    text += "\nPearson {pearson:.2f}, Spearman {spearman:.2f}\n".format(**found["real"])
    (folder / "doppler.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Doppler's tables, paper and ours.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    parser.add_argument("--epochs", type=int, default=60, help="of every training")
    parser.add_argument("--real-epochs", type=int, default=6, help="of 16 real passes each")
    given = parser.parse_args()
    main(given.output, given.epochs, given.real_epochs)
