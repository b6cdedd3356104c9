"""Table 1 of the DREAM paper: its three models by its text, by its code, and in between.

``python benchmarks/dream_paper.py table -o out/`` trains B, B+F1 and B+F1&F2 with the presets
``paper`` and ``paper-code`` at each rate on the training graphs of the standard benchmark, and
places its test graphs. ``screening`` instead trains on a hundred training graphs, by both presets
and by ``paper`` with one choice of ``paper-code`` at a time, and places a hundred others of them:
no test graph has a part in it. A run per seed, each on one core, as many at once as ``--jobs``
says; a run that was stopped goes on after its last epoch.

The throughputs of the graphs under greedy placements become a line of ``--runs``, and runs that are
there are not made again. The weights are those of the epoch whose own samples were best in the
mean. `table` prints means with two 95 % intervals: over graphs (of their means over the seeds) and
over seeds (of their means over the graphs). `screening` prints what each choice adds to ``paper``,
with one interval of both, and draws it. Both draw the curves of the trainings.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from streamsim import throughput
from studies import DATA, append_row, markdown, read_rows, test_problems, workers_options

from streamplace import Cluster, Problem, StreamGraph, read_graphs, train
from streamplace.drawing.figures import (
    GREY,
    INK,
    ORANGE,
    finish,
    line_style,
    new_figure,
    panels,
    save,
)
from streamplace.evaluate.paired import half_interval
from streamplace.evaluate.parallel import parallel_map
from streamplace.io.datasets import drawn
from streamplace.learn.history import History, Watcher
from streamplace.learn.registry import MODELS
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer

ASSETS = DATA.parents[1] / "docs/assets"
VARIANTS = {"encdec": "B", "encdec-gnn": "B+F1", "dream": "B+F1&F2"}
OF_PAPER = {
    10_000: {"metis": 0.81, "encdec": 0.82, "encdec-gnn": 0.87, "dream": 0.91},
    20_000: {"metis": 0.48, "encdec": 0.45, "encdec-gnn": 0.48, "dream": 0.53},
}


class Choice(NamedTuple):
    """Options that replace those of a preset."""

    preset: str
    model: Mapping[str, Any] = {}
    training: Mapping[str, Any] = {}
    of_memory: bool = False  # depends on how good the known placements are
    models: Sequence[str] = tuple(VARIANTS)


CHOICES = {
    "paper": Choice("paper", of_memory=True),
    "10 samples, 5 replayed": Choice(
        "paper", {"on_policy": 10, "replayed": 5, "places": 9}, of_memory=True
    ),
    "the best is replayed": Choice("paper", {"replay_best": True}, of_memory=True),
    "baseline of the memory": Choice("paper", {"baseline": "memory", "places": 9}, of_memory=True),
    "gains count ten times": Choice("paper", {"gain": 10.0}),
    "renumbered": Choice("paper", {"renumbered": True}),
    "uniform exploration below .99": Choice(
        "paper", {"exploration_over": "placements", "poor_below": 0.99}, of_memory=True
    ),
    "standardised logarithms": Choice("paper", {"standardised": True}),
    "order of the file": Choice("paper", {"depth_first": True}),
    "no device before": Choice("paper", {"previous": False}),
    "additive attention, or none": Choice("paper", {"attention": "additive"}),
    "GraphSAGE": Choice("paper", {"pooling": "max", "tied": False}, models=("encdec-gnn", "dream")),
    "learning rate .01": Choice(
        "paper", training={"learning_rate": 0.01, "final_learning_rate": 0.01}
    ),
    "reward by machines": Choice("paper", {"per_device": True}),
    "paper-code": Choice("paper-code", of_memory=True),
    "paper-code, learning rate .001": Choice(
        "paper-code", training={"learning_rate": 0.001, "final_learning_rate": 0.001}
    ),
    "paper-code, reads loads": Choice("paper-code", {"utilisation": True}, models=("dream",)),
}
"""The presets, and each choice that leads from one to the other."""
PRESETS = ("paper", "paper-code")


class Run(NamedTuple):
    """One training; ``choice`` is one of `CHOICES`."""

    choice: str
    model: str
    rate: int
    seed: int

    @property
    def words(self) -> str:
        """Name of its folder."""
        name = self.choice.replace(" ", "-").replace(",", "")
        return f"{name}-{self.model}-{self.rate}-{self.seed}"


Kind = tuple[int, str, str]
"""Rate, model and choice of trainings that differ in their seed alone."""


class Epochs(Watcher):
    """Prints every epoch of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def epoch(self, history: History) -> None:
        """Print the last epoch."""
        last = history.epochs[-1]
        where = f"{self._run.words}, epoch {last.epoch}"
        print(f"{where}: reward {last.reward:.4f}, {last.seconds:.0f} s", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is not complete, place, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["table", "screening"])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the trainings")
    parser.add_argument("--runs", type=Path, help="file of the complete ones (in docs/assets)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rates", type=int, nargs="+", default=list(OF_PAPER), choices=OF_PAPER)
    parser.add_argument("--models", nargs="+", default=list(VARIANTS)[::-1], choices=VARIANTS)
    parser.add_argument("--choices", nargs="+", choices=CHOICES, metavar="CHOICE", help="names")
    parser.add_argument("--limit", type=int, help="only so many graphs (screening: 100)")
    parser.add_argument("--epochs", type=int, help="instead of 40 (screening: 20)")
    workers_options(parser)
    given = parser.parse_args(arguments)
    screens = given.study == "screening"
    limit, epochs = given.limit, given.epochs
    if screens:
        limit, epochs = limit or 100, epochs or 20
    path = given.runs or ASSETS / f"dream-{'screening' if screens else 'paper'}.jsonl"
    choices = given.choices or (CHOICES if screens else PRESETS)
    runs = list(runs_of(choices, given.models, given.rates, given.seeds, screens=screens))
    found = recorded(path)
    missing = [run for run in runs if run not in found]
    function = partial(trained, folder=given.output, limit=limit, epochs=epochs, screens=screens)
    for row in parallel_map(function, missing, given.jobs, given.on, max_serial=1):
        append_row(path, row)
        if screens:  # weights of all runs would take 20 GB
            shutil.rmtree(given.output / run_of(row).words)
    found = recorded(path)
    values = by_seed(runs, found)
    given.output.mkdir(parents=True, exist_ok=True)
    print(markdown(list(screened(values) if screens else table(values, limit))))
    for rate in given.rates:
        draw([found[run] for run in runs if run.rate == rate], rate, given.output)
        if screens:
            draw_choices(rate, values, given.output)


def runs_of(
    choices: Sequence[str],
    models: Sequence[str],
    rates: Sequence[int],
    seeds: Sequence[int],
    *,
    screens: bool,
) -> Iterator[Run]:
    """Runs in the order in which they are made; at the second rate, a screening makes few."""
    for rate in rates:
        for model in models:
            for seed in seeds:
                for name in choices:
                    choice = CHOICES[name]
                    few = screens and rate != min(OF_PAPER) and not choice.of_memory
                    if model in choice.models and not few:
                        yield Run(name, model, rate, seed)


def run_of(row: Mapping[str, Any]) -> Run:
    """Run of a line of the file."""
    return Run(*(row[name] for name in Run._fields))


def recorded(path: Path) -> dict[Run, dict[str, Any]]:
    """Lines of complete runs."""
    return {run_of(row): row for row in read_rows(path)}


def graphs_of(limit: int | None, *, screens: bool) -> tuple[list[StreamGraph], list[StreamGraph]]:
    """Graphs to train on, and in a screening as many others of the same split to judge by."""
    graphs = (g for g in read_graphs(DATA) if g.attributes["split"] == "train")
    if not screens:
        return list(drawn(graphs, limit, seed=0)), []
    assert limit is not None
    every = list(drawn(graphs, 2 * limit, seed=0))
    return every[::2], every[1::2]


def judged_by(rate: int, others: Sequence[StreamGraph], limit: int | None) -> list[Problem]:
    """Problems that judge: those of other graphs, or without any the test problems."""
    if others:
        return [Problem(graph.at_rate(rate), Cluster.uniform(5)) for graph in others]
    return list(drawn(test_problems(rate), limit, seed=0))


def trained(
    run: Run, folder: Path, limit: int | None, epochs: int | None, *, screens: bool
) -> dict[str, Any]:
    """Line of a training, which is completed first."""
    path, choice = folder / run.words, CHOICES[run.choice]
    graphs, others = graphs_of(limit, screens=screens)
    path.mkdir(parents=True, exist_ok=True)
    options = path / "options.toml"
    tables = {"model": choice.model, "training": choice.training}
    options.write_text("".join(f"[{name}]\n{toml(table)}" for name, table in tables.items()))
    done = train(
        run.model,
        graphs,
        path,
        rate=[run.rate],
        cluster=Cluster.uniform(5),
        preset=choice.preset,
        config=options,
        epochs=epochs,
        device="cpu",
        seed=run.seed,
        resume=(path / "last.safetensors").exists(),
        watcher=Epochs(run),
        track=lambda items, *_: items,
    )
    problems, history = judged_by(run.rate, others, limit), done.history
    last = throughputs(run.model, path / "last.safetensors", problems)
    best = throughputs(run.model, path / "best.safetensors", problems)
    return {
        **run._asdict(),
        "graphs": len(graphs),
        "last": round(float(last.mean()), 4),
        "evaluations": sum(epoch.evaluations for epoch in history.epochs),
        "seconds": round(sum(epoch.seconds for epoch in history.epochs)),
        "rewards": [round(epoch.reward, 4) for epoch in history.epochs],
        "throughputs": best.round(4).tolist(),
    }


def toml(table: Mapping[str, Any]) -> str:
    """Lines of a table."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())


def throughputs(model: str, weights: Path, problems: Sequence[Problem]) -> Floats:
    """Throughput of problems under the greedy placements by weights."""
    allocator = MODELS[model].allocator
    assert allocator is not None
    placements = allocator(weights).place_many(problems)
    pairs = zip(problems, placements, strict=True)
    return np.array([float(throughput(problem.instance, p.index[None])[0]) for problem, p in pairs])


def by_seed(runs: Sequence[Run], found: Mapping[Run, Mapping[str, Any]]) -> dict[Kind, Floats]:
    """Throughputs [seeds, graphs] by kind of training."""
    values: dict[Kind, list[list[float]]] = {}
    for run in runs:
        values.setdefault((run.rate, run.model, run.choice), []).append(found[run]["throughputs"])
    return {key: np.array(rows) for key, rows in values.items()}


def intervals(values: Floats) -> dict[str, str]:
    """Mean of throughputs [seeds, graphs], and its two intervals."""
    of_graphs, of_seeds = values.mean(axis=0), values.mean(axis=1)
    return {
        "mean": f"{values.mean():.3f}",
        "over graphs": f"± {half_interval(of_graphs):.3f}",
        "over seeds": f"± {half_interval(of_seeds):.3f}" if len(of_seeds) > 1 else "–",
    }


def table(values: Mapping[Kind, Floats], limit: int | None) -> Iterator[dict[str, str]]:
    """Rows of METIS and of each model and preset."""
    metis: dict[int, Floats] = {}
    for (rate, model, choice), throughput_by_seed in values.items():
        if rate not in metis:
            metis[rate] = metis_values(rate, limit)
            yield row_of(rate, "metis", "METIS", metis[rate][None], metis[rate])
        title = f"{VARIANTS[model]}, {choice}"
        yield row_of(rate, model, title, throughput_by_seed, metis[rate])


def screened(values: Mapping[Kind, Floats]) -> Iterator[dict[str, str]]:
    """A row per choice: for each model what it adds to the mean of ``paper``, and the interval.

    The half intervals over graphs and over seeds are added as independent errors; one seed has
    none.
    """
    for rate in dict.fromkeys(rate for rate, *_ in values):
        for choice in CHOICES:
            row = {"tuples/s": f"{rate:,}", "choice": choice}
            for model, title in VARIANTS.items():
                text = values.get((rate, model, "paper"))
                if text is None or (those := values.get((rate, model, choice))) is None:
                    row[title] = "–"
                elif choice == "paper":
                    row[title] = f"{those.mean():.3f}"
                else:
                    more = those - text
                    of_each = [more.mean(axis=axis) for axis in (0, 1)]
                    halves = [half_interval(means) for means in of_each if len(means) > 1]
                    row[title] = f"{more.mean():+.3f} ± {hypot(*halves):.3f}"
            if any(row[title] != "–" for title in VARIANTS.values()):
                yield row


def metis_values(rate: int, limit: int | None) -> Floats:
    """Throughput of the test graphs under METIS."""
    metis, objective = named_placer("metis"), OBJECTIVES["throughput"]
    problems = drawn(test_problems(rate), limit, seed=0)
    return np.array([metis.place(problem, objective).value for problem in problems])


def row_of(rate: int, model: str, title: str, values: Floats, metis: Floats) -> dict[str, str]:
    """Row of a model from its throughputs [seeds, graphs]."""
    return {
        "tuples/s": f"{rate:,}",
        "": title,
        **intervals(values),
        "first quartile": f"{np.quantile(values, 0.25):.3f}",
        "median": f"{np.median(values):.3f}",
        "better than METIS": f"{np.mean(values > metis + 1e-9):.0%}",
        "the paper's mean": f"{OF_PAPER[rate][model]:.2f}",
    }


def draw(rows: Sequence[Mapping[str, Any]], rate: int, folder: Path) -> None:
    """Draw the means of the samples' rewards, epoch by epoch, in bands over the seeds."""
    rows = [row for row in rows if row.get("rewards")]
    presets = [name for name in PRESETS if any(row["choice"] == name for row in rows)]
    if not presets:
        return
    figure, axes = panels(presets)
    for axis, preset in zip(axes, presets, strict=True):
        for i, model in enumerate(VARIANTS):
            curves = [r["rewards"] for r in rows if (r["choice"], r["model"]) == (preset, model)]
            if not curves:
                continue
            values = np.array([curve[: min(map(len, curves))] for curve in curves])
            epochs, style = np.arange(1, values.shape[1] + 1), line_style(i)
            axis.plot(epochs, values.mean(axis=0), label=VARIANTS[model], **style)
            low, high = values.min(axis=0), values.max(axis=0)
            axis.fill_between(epochs, low, high, color=style["color"], alpha=0.25, linewidth=0)
        axis.set_xlabel("epoch")
    axes[0].set_ylabel("mean throughput of samples")
    title = f"Training graphs, {rate:,} tuples/s: mean and range over seeds"
    save(finish(figure, title), folder / f"curves-{rate}.svg")


def draw_choices(rate: int, values: Mapping[Kind, Floats], folder: Path) -> None:
    """Draw the mean of every training by its choice, and the interval of their mean over graphs."""
    names = [n for n in CHOICES if any((rate, model, n) in values for model in VARIANTS)][::-1]
    figure, axes = new_figure(len(VARIANTS), width=3.2, height=0.26 * len(names) + 0.8)
    for axis, (model, title) in zip(axes, VARIANTS.items(), strict=True):
        axis.set_title(title, fontsize=10)
        axis.set_yticks(range(len(names)), names if axis is axes[0] else [""] * len(names))
        axis.set_ylim(-0.6, len(names) - 0.4)
        axis.set_xlabel("mean throughput")
        for i, name in enumerate(names):
            if (those := values.get((rate, model, name))) is None:
                continue
            mean, half = those.mean(), half_interval(those.mean(axis=0))
            axis.errorbar(mean, i, xerr=half, fmt="|", color=INK, capsize=3)
            axis.scatter(those.mean(axis=1), [i] * len(those), s=14, color=ORANGE, zorder=3)
            if name == "paper":
                axis.axvline(mean, color=GREY, linewidth=0.8)
    title = f"100 graphs that no training has seen, {rate:,} tuples/s: trainings, mean and interval"
    save(finish(figure, title), folder / f"choices-{rate}.svg")


if __name__ == "__main__":
    main()
