"""What each part of the learned allocators brings: short trainings that differ in one thing.

Run ``python benchmarks/ablation.py -o out/`` (a quarter of an hour on two cores). Every variant
learns from the training graphs of the standard benchmark at 10,000 tuples/s, with the same seed,
then places the test graphs greedily. A run that was stopped goes on where it was. Writes
``ablation.json``, and prints the table.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamplace import Cluster, Problem, StreamGraph, read_graphs, train
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

RATE = 1e4
EPOCHS = {"dream": 8, "pilot": 5}
DATA = Path(__file__).parents[1] / "datasets" / "branched.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Variant:
    """A model, and what is different about it."""

    title: str
    model: str
    options: str = ""
    placing: str = ""

    @property
    def family(self) -> str:
        """Whose number of epochs it is trained for."""
        return "pilot" if self.model == "pilot" else "dream"

    @property
    def run(self) -> str:
        """Name of its training: variants that only place differently share one."""
        changed = (
            self.options.replace(" = ", "-").replace("\n", "-").replace(".", "").replace('"', "")
        )
        return f"{self.model}-{changed}".strip("-")


VARIANTS = (
    Variant("encdec", "encdec"),
    Variant("encdec-gnn", "encdec-gnn"),
    Variant("dream (load-aware)", "dream"),
    Variant("dream without the devices' state", "dream", "device_state = false"),
    Variant("dream without its memory", "dream", "replayed = 0"),
    Variant("dream without canonical devices", "dream", "canonical = false"),
    Variant("pilot, one rollout of one sweep", "pilot", placing=":rollouts=1:sweeps=1"),
    Variant("pilot, one rollout of three sweeps", "pilot", placing=":rollouts=1"),
    Variant("pilot, two rollouts of three sweeps", "pilot"),
    Variant("pilot by imitation alone", "pilot", "warm_up = 1000"),
    Variant("pilot without supervision", "pilot", "warm_up = 0\nimitation = 0.0"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is not trained yet, place, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--limit", type=int, help="only so many graphs of either split")
    parser.add_argument("--epochs", type=int, help="instead of the usual ones")
    given = parser.parse_args(arguments)
    graphs = list(read_graphs(DATA))
    learn, test = (
        [graph for graph in graphs if graph.attributes["split"] == split][: given.limit]
        for split in ("train", "test")
    )
    rows = []
    for variant in VARIANTS:
        folder = given.output / variant.run
        epochs = given.epochs or EPOCHS[variant.family]
        trained(variant, learn, folder, epochs)
        rows.append(judged(variant, folder / "best.safetensors", test))
        print(rows[-1]["row"], flush=True)
    (given.output / "ablation.json").write_text(json.dumps(rows, indent=1) + "\n")


def trained(variant: Variant, graphs: list[StreamGraph], folder: Path, epochs: int) -> None:
    """Train a variant, or go on with it."""
    config = folder.parent / f"{variant.run}.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[model]\n{variant.options}\n")
    train(
        variant.model,
        graphs,
        folder,
        rate=[RATE],
        config=config,
        epochs=epochs,
        resume=(folder / "last.safetensors").exists(),
    )


def judged(variant: Variant, weights: Path, graphs: list[StreamGraph]) -> dict[str, object]:
    """Mean, quartile, median and wins over METIS on the test graphs, as in the paper's Table 1."""
    greedy = ":samples=0:refine=none" if variant.model == "pilot" else ""
    name = f"{variant.model}:weights={weights}{greedy}{variant.placing}"
    values, metis = placed(name, graphs), placed("metis", graphs)
    won, lost = (float(np.mean(values > metis)), float(np.mean(values < metis)))
    mean, quartile, median = values.mean(), *np.quantile(values, [0.25, 0.5])
    row = (
        f"| {variant.title} | {mean:.3f} | {quartile:.3f} | {median:.3f} | {won:.0%} | {lost:.0%} |"
    )
    return {
        "title": variant.title,
        "figures": [mean, quartile, median],
        "won": won,
        "lost": lost,
        "row": row,
    }


def placed(name: str, graphs: list[StreamGraph]) -> np.ndarray:
    """Relative throughput of every graph under a placer."""
    placer, objective = named_placer(name), OBJECTIVES["throughput"]
    cluster, budget = Cluster.uniform(5), Budget(seconds=None, evaluations=10)
    return np.array(
        [
            placer.place(Problem(graph.at_rate(RATE), cluster), objective, budget=budget).value
            for graph in graphs
        ]
    )


if __name__ == "__main__":
    main()
