"""Doppler's Tables 2 and 4 and its simulator against real passes, at a size for two cores.

Run ``python benchmarks/doppler.py -o out/`` (an hour or so; fewer ``--epochs`` make it shorter). It
measures real passes on a local Ray, trains on each of the paper's four graphs, and fine-tunes the
weights of the small graphs on the large ones. Complete trainings are not repeated. Writes
``doppler.json`` and ``doppler.md``, and prints the tables.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from studies import markdown, rank_correlation

from streamplace import Problem, place, train
from streamplace.engines.ray.passes import RayPasses
from streamplace.families.registry import FAMILIES
from streamplace.model.problem import random_placements
from streamplace.objectives.registry import named_objective
from streamplace.papers.families.chainmm import ChainMM
from streamplace.placers.registry import Budget

LINKS = "makespan:preset=doppler"
GRAPHS = ("chainmm", "ffnn", "llama-block", "llama-layer")
OTHERS = {
    "1 GPU": ("single", 1),
    "critical-path": ("critical-path", 50),
    "enumerative": ("enumerative", 1),
    "heft": ("heft", 1),
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


def problem_of(family: str) -> Problem:
    """The paper's graph on four GPUs."""
    known = FAMILIES[family]
    return next(iter(known.generate(known.parameters(), 0)))


def trained(folder: Path, problem: Problem, **options: Any) -> Path:
    """Weights of a run, which is made unless it is there."""
    weights = folder / "best.safetensors"
    if not (folder / "history.jsonl").exists() or not weights.exists():
        train("doppler", [problem], folder, objective=LINKS, **options)
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
    """Table 2: a row per graph."""
    rows = []
    for family in GRAPHS:
        problem = problem_of(family)
        row: dict[str, Any] = {"graph": family}
        for name, (placer, evaluations) in OTHERS.items():
            row[name] = milliseconds(problem, placer, budget=Budget(None, evaluations))
        proof = place(problem, placer="exact", objective=LINKS, budget=Budget(seconds=PROOF_S))
        row["exact"] = 1e3 * proof.value
        row |= learned(problem, trained(folder / family, problem, epochs=epochs))
        lines = (folder / family / "history.jsonl").read_text("utf-8").splitlines()
        bound, best = named_objective(LINKS).bound(problem), json.loads(lines[-1])["best"]
        row["best of training"] = 1e3 * (bound or 0.0) / best
        row["bound"] = 1e3 * (proof.bound or 0.0)
        rows.append(row)
        print(row, flush=True)
    return rows


def table_of_transfers(folder: Path, epochs: int) -> list[dict[str, Any]]:
    """Table 4: weights of one graph on another, at once and after a third and two thirds."""
    rows = []
    for source, target in TRANSFERS:
        weights = folder / source / "best.safetensors"
        problem = problem_of(target)
        row: dict[str, Any] = {"learned on": source, "placed": target}
        row["zero-shot"] = learned(problem, weights)["best"]
        for share in (1, 2):
            run = folder / f"{source} to {target}, {share}"
            more = max(1, share * epochs // 3)
            again = trained(run, problem, start=weights, epochs=more)
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
    return {
        "simulated": simulated.tolist(),
        "measured": real.tolist(),
        "pearson": float(np.corrcoef(simulated, real)[0, 1]),
        "spearman": rank_correlation(simulated, real),
    }


def main(folder: Path, epochs: int) -> None:
    """Train, place and measure; write and print the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    problem = next(iter(FAMILIES["chainmm"].generate(SMALL, 0)))
    with RayPasses([problem]) as measure:
        real = compared(problem, measure)
    placers, transfers = table_of_placers(folder, epochs), table_of_transfers(folder, epochs)
    results = {"real": real, "placers": placers, "transfers": transfers}
    (folder / "doppler.json").write_text(json.dumps(results), "utf-8")
    text = f"{markdown(placers, digits=2)}\n{markdown(transfers, digits=2)}"
    text += "\nPearson {pearson:.2f}, Spearman {spearman:.2f}\n".format(**real)
    (folder / "doppler.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Doppler's tables, paper and ours.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    parser.add_argument("--epochs", type=int, default=60, help="of every training")
    options = parser.parse_args()
    main(options.output, options.epochs)
