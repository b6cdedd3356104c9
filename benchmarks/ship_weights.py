"""Put trained weights into the package, in half precision, with their model cards.

Run ``python benchmarks/ship_weights.py runs/dream runs/encdec …`` with the folders of
``streamplace train``. The figures on the cards are measured with the halved weights: on the test
graphs of the standard benchmark, or where task graphs are placed on the test problems of GiPH's.
"""

import argparse
from collections.abc import Sequence
from inspect import getfile
from pathlib import Path
from typing import Any

import numpy as np
from studies import table, test_problems

from streamplace.families.registry import FAMILIES
from streamplace.io.weights import read_weights, write_weights
from streamplace.learn.registry import MODELS
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.giph import Giph
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

RATES = (1e4, 2e4)
RECIPES = ("training", "training-more")
OF_DREAM = {"problems": "", "more": " --seed 1 --own 0.4", "fresh": " --count 8000 --own 0.4"}
"""Data sets that `dream_graphs` makes, and its options."""
LIMITS = {
    "dream": "Up to 64 devices of any speed, constraints. Trained on 4 to 70 operators on 2 to 64 "
    "devices, equal and unequal; on hundreds of operators, others are better. The first two "
    "trainings on fresh problems were longer ones, stopped after an epoch. Those of 12 and 16 "
    "epochs had fresh_branched .85, the former a learning rate from 6e-4 to 3e-6. Epochs of the "
    "last three were not chosen.",
    "giph": "Any number of devices, constraints, any objective that a placement may be judged by. "
    "Trained on task graphs of 10 to 50 tasks on 20 devices.",
    "giph-task-eft": "As `giph`; it chooses tasks, which go where they are done first.",
    "placeto": "Up to 32 devices, told apart by their number alone: it learns what the devices of "
    "one cluster are good for. These weights were trained on ten clusters, as GiPH's paper "
    "does to show that this cannot work; train it for a cluster of your own.",
    "pilot": "Any number of devices of any speed, constraints, several sources. Trained on graphs "
    "of 4 to 27 operators on two to five devices; on hundreds of operators search alone is better.",
    **dict.fromkeys(
        ("hdp", "hsdag"),
        "Up to 20 devices, told apart by their number alone. Trained on ten clusters at once; both "
        "are meant to be trained on the problem itself.",
    ),
}
EPISODE = """One episode of two steps per task from a random placement on the {} test
problems of `streamplace generate giph`: makespans as multiples of HEFT's, beside a random walk of
as many steps to where tasks are done first, and as many random placements."""
LIKELIEST = """Likeliest placements of the {} test problems of `streamplace generate giph`:
makespans as multiples of HEFT's, beside the best of random ones, two for each task."""
PAPER_LIMITS = (
    "Clusters of up to five devices, thought of as equal. Trained on branched pipelines of 4 to 27 "
    "operators with one source; other shapes ask for more training (`--start shipped`)."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Halve, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders of trained models")
    for run in parser.parse_args(arguments).runs:
        weights = read_weights(run / "best.safetensors")
        document = dict(weights.document)
        training = document["training"]
        command = training["command"].replace(str(run), f"runs/{weights.model}")
        document["training"] = {**training, "command": command}
        folder = folder_of(weights.model)
        path = folder / f"{weights.model}.safetensors"
        write_weights(path, document, halved(weights.tensors))
        (folder / f"{weights.model}.md").write_text(card(path), encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def folder_of(model: str) -> Path:
    """Folder of a model, where its options are declared."""
    return Path(getfile(MODELS[model].config)).parent


def halved(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tensors in half precision, which halves the files."""
    return {
        name: array.astype(np.float16) if array.dtype == np.float32 else array
        for name, array in tensors.items()
    }


def card(path: Path) -> str:
    """Model card: commands, results and limits of the weights."""
    document = read_weights(path).document
    model, training = document["model"], document["training"]
    results = tasks_table if training.get("objective") == "makespan" else streams_table
    options = ", ".join(f"{name} {value}" for name, value in document["config"].items())
    return f"""# {model}

```console
{made(training)}
```

Seed {training["seed"]}, {training["problems"]} training problems, epoch
{training["epochs"]}, validation {training["validation"]:.4f}, streamplace
{training["streamplace"]}{cost(training)}. SHA-256 of the data: `{training["data"]}`.

Options: {options}.

{results(model, path)}

For: {LIMITS.get(model, PAPER_LIMITS)}
"""


def cost(training: dict[str, Any]) -> str:
    """Cost of the last training, if the weights have recorded it."""
    if "steps" not in training:
        return ""
    return (
        f"; {training['steps']:,} steps, {training['evaluations']:,} evaluations, "
        f"{training['seconds'] / 60:.0f} min on {training['device']}"
    )


def streams_table(model: str, path: Path) -> str:
    """Greedy placements on the standard benchmark, against METIS."""
    heads = ("tuples/s", "mean", "q1", "median", "against METIS")
    lines = [measured(model, path, rate) for rate in RATES]
    return f"""Greedy placements of the 630 test graphs of the standard benchmark: relative
throughput, and graphs that are better than, equal to and worse than METIS's.

{table(heads, lines, texts=5).rstrip()}"""


def tasks_table(model: str, path: Path) -> str:
    """Episodes, or likeliest placements, on GiPH's benchmark, against HEFT."""
    problems = [
        problem
        for problem in FAMILIES["giph"].generate(Giph(), 0)
        if problem.graph.attributes["split"] == "test"
    ]
    objective = OBJECTIVES["makespan"]
    heft = np.array([named_placer("heft").place(one, objective).value for one in problems])
    lines = []
    improves = MODELS[model].improver is not None
    for name in (f"{model}:weights={path}", *(("eft",) if improves else ()), "random"):
        values = [
            named_placer(name)
            .place(one, objective, budget=Budget(None, 1 + 2 * one.n_operators))
            .value
            for one in problems
        ]
        ratio, title = np.array(values) / heft, name.partition(":")[0]
        figures = f"{ratio.mean():.3f}", f"{np.median(ratio):.3f}", f"{ratio.max():.2f}"
        lines.append((title, *figures))
    caption = EPISODE if improves else LIKELIEST
    return f"""{caption.format(len(problems))}

{table(("", "mean", "median", "worst"), lines, texts=4).rstrip()}"""


def made(training: dict[str, Any]) -> str:
    """Commands of all trainings that led to the weights, and of their data."""
    data = [
        f"streamplace generate recipe datasets/{name}.toml -o {name}.jsonl.gz"
        for name in RECIPES
        if f"--data {name}.jsonl.gz" in training["command"]
    ]
    data += [
        f"python benchmarks/dream_graphs.py{options} -o {name}.jsonl.gz"
        for name, options in OF_DREAM.items()
        if f"--data {name}.jsonl.gz" in training["command"]
    ]
    if "--data giph.jsonl.gz" in training["command"]:
        data.append("streamplace generate giph -o giph.jsonl.gz")
    before = [made(training["start"])] if training["start"] else []
    lines = "\n".join([*before, *data, training["command"]]).splitlines()
    return "\n".join(dict.fromkeys(lines))


def measured(model: str, path: Path, rate: float) -> tuple[str, ...]:
    """Figures of greedy placements of the test graphs at a rate."""
    greedy = ":samples=0:refine=none" if model == "pilot" else ""
    problems = test_problems(rate)
    objective = OBJECTIVES["throughput"]
    values, metis = (
        np.array([named_placer(name).place(problem, objective).value for problem in problems])
        for name in (f"{model}:weights={path}{greedy}", "metis")
    )
    quartile, median = np.quantile(values, [0.25, 0.5])
    won, lost = np.mean(values > metis + 1e-9), np.mean(values < metis - 1e-9)
    pairs = f"{won:.0%} / {1 - won - lost:.0%} / {lost:.0%}"
    return f"{rate:,.0f}", *(f"{x:.3f}" for x in (values.mean(), quartile, median)), pairs


if __name__ == "__main__":
    main()
