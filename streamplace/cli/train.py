"""``streamplace train``: train a model on one's own graphs, and resume it exactly."""

import logging
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamplace.cli import _options
from streamplace.cli._options import FILE, ClusterChoice
from streamplace.cli._output import console, print_json, say
from streamplace.errors import SettingError
from streamplace.model.messages import quoted
from streamplace.objectives.report import percent

if TYPE_CHECKING:
    from streamplace.learn.workers import Workers
    from streamplace.model.problem import Problem
    from streamplace.training.trained import Trained

TRAINING_SPLIT = "train"


class TrainCommand(click.Command):
    """A command whose help lists the registered models."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the models."""
        from streamplace.learn.registry import MODELS

        super().format_options(ctx, formatter)
        rows = [(name, MODELS[name].summary) for name in MODELS]
        if rows:
            with formatter.section("Models"):
                formatter.write_dl(rows)


@click.command(
    "train",
    cls=TrainCommand,
    epilog="Example: streamplace train dream --data b.jsonl.gz --rate 10000 --rate 20000 "
    "--out runs/dream; then: streamplace place g.json --placer dream "
    "--weights runs/dream/best.safetensors",
)
@click.argument("model")
@click.option(
    "--data", type=FILE, required=True, help="Graphs: a data set, a graph or a folder of graphs."
)
@click.option("--out", type=FILE, required=True, help="Folder of the run; a new one, or --resume.")
@click.option(
    "--preset",
    default="fast",
    show_default=True,
    help="Options that go well together: fast, paper.",
)
@click.option(
    "--config", type=FILE, help="TOML file whose tables [training] and [model] change the preset."
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    help="Total rate of the sources; repeat for several.  [default: the graphs' own]",
)
@click.option(
    "--split", help="Only the graphs of this split.  [default: train, where the data have it]"
)
@click.option("--limit", type=click.IntRange(1), help="Only the first so many graphs.")
@click.option("--epochs", type=int, help="Passes over the data, instead of the preset's.")
@click.option("--device", default="cpu", show_default=True, help="Where to compute: cpu or cuda.")
@_options.objective
@click.option(
    "--reward",
    default="steady",
    show_default=True,
    help="What judges: simulation, of the steady state or by the engine (queues, slower), or real "
    "passes on a local Ray (ray, for makespan; seconds each).",
)
@click.option(
    "--start",
    help="Weights to begin from: a file, or 'shipped' for those that come with streamplace.",
)
@click.option(
    "--on",
    metavar="RAY",
    help="Compute on Ray: 'ray' starts one here, 'auto' or an address takes a cluster that runs.",
)
@click.option("--resume", is_flag=True, help="Go on where the run in --out was stopped.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="One seed gives one result, on any number of cores, processes and workers.",
)
@_options.cluster
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@_options.verbose
def command(
    model: str,
    data: Path,
    out: Path,
    preset: str,
    config: Path | None,
    rates: tuple[str, ...],
    split: str | None,
    limit: int | None,
    epochs: int | None,
    device: str,
    objective: str,
    reward: str,
    start: str | None,
    on: str | None,
    resume: bool,
    seed: int,
    cluster: ClusterChoice,
    as_json: bool,
) -> None:
    """Train MODEL on graphs or problems, by trial and reward, into a folder.

    A tenth of the graphs is held out and never trained on: best.safetensors holds the weights that
    place those best, and is what --weights of place takes. Beside it are history.jsonl, curve.png
    and tensorboard/ for people, and last.safetensors for --resume: training that was stopped or
    killed goes on as if it had never stopped. Several processes share the work if torchrun starts
    them: torchrun --nproc-per-node 2 -m streamplace train ...
    """
    from streamplace.cli._training import Display, tracked
    from streamplace.learn.registry import MODELS
    from streamplace.model.units import tuple_rate
    from streamplace.objectives.registry import suggested_by_all
    from streamplace.training.prepared import train_run
    from streamplace.training.run import TrainingRun

    typed = _as_typed(click.get_current_context())
    with _workers(on, typed, out, resume) as workers:
        problems = tuple(_problems(data, split, limit, cluster))
        run = TrainingRun(
            model=MODELS[model].name,
            problems=problems,
            rates=tuple(tuple_rate(rate) for rate in rates),
            preset=preset,
            config=config,
            epochs=epochs,
            device=device,
            objective=objective or suggested_by_all(problem.graph for problem in problems),
            reward=reward,
            seed=seed,
            start=start,
            command=typed,
        )
        watcher = Display(run.model)
        trained = train_run(
            run, out, resume=resume, watcher=watcher, track=tracked, workers=workers
        )
    if workers.leads and as_json:
        print_json(as_document(trained))
    elif workers.leads:
        show(trained)


def _problems(
    data: Path, split: str | None, limit: int | None, cluster: ClusterChoice
) -> "list[Problem]":
    """Problems to train on: of the split asked for, else those meant for training, else all."""
    if split is None:
        everything = list(_options.data_set(data, cluster=cluster))
        meant = [p for p in everything if p.graph.attributes.get("split") == TRAINING_SPLIT]
        return (meant or everything)[:limit]
    found = list(_options.data_set(data, split, limit, cluster))
    if not found:
        raise SettingError(f"{data} holds no graph of split {quoted(split)}")
    return found


@contextmanager
def _workers(on: str | None, typed: str, out: Path, resume: bool) -> "Iterator[Workers]":
    """Who trains; of several processes one speaks. Ctrl-C tells how to go on."""
    from streamplace.io.extras import importing_torch
    from streamplace.training.workers import workers_on

    with importing_torch():
        from streamplace.learn.processes import Ended, leads

    context = click.get_current_context()
    if not leads():
        logging.disable()
    try:
        with workers_on(on) as workers:
            yield workers
    except Ended:
        context.exit(2)
    except KeyboardInterrupt:
        if leads():
            _say_how_to_go_on(typed, out, resume)
        context.exit(130)


def _say_how_to_go_on(typed: str, out: Path, resume: bool) -> None:
    from streamplace.learn.checkpoint import NAME, read_checkpoint
    from streamplace.learn.processes import launcher

    again = f"{launcher()}{typed}"
    if not (out / NAME).exists():
        say("stopped before training began")
    else:
        done = len(read_checkpoint(out).history.epochs)
        again += "" if resume else " --resume"
        say(f"stopped; {counted(done)} kept in {out}/")
    say(f"go on with: {again}")


def _as_typed(context: click.Context) -> str:
    """Return the command line that leads to these options."""
    words = ["streamplace", "train"]
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif value is True:
            words.append(parameter.opts[0])
        else:
            for single in value if isinstance(value, tuple) else (value,):
                words += [parameter.opts[0], str(single)]
    return shlex.join(words)


def counted(number: int) -> str:
    """Return a number of epochs in words.

    >>> counted(1), counted(2)
    ('1 epoch', '2 epochs')
    """
    return f"{number} epoch{'' if number == 1 else 's'}"


def as_document(trained: "Trained") -> dict[str, Any]:
    """JSON document of what training came to."""
    history = trained.history
    last = history.epochs[-1]
    return {
        "model": trained.model,
        "folder": str(trained.folder),
        "weights": str(trained.weights),
        "epochs": len(history.epochs),
        "best_epoch": history.best,
        "stopped_early": len(history.epochs) < trained.epochs,
        "seconds": trained.seconds,
        "reward": last.reward,
        "best_known": last.best,
        "validation": {
            f"{rate:g}": {"problems": n, "mean": mean, "of_optimum": share}
            for rate, (n, mean, share) in trained.by_rate().items()
        },
    }


def show(trained: "Trained") -> None:
    """Print how good the best weights are, and where they are."""
    from rich.table import Table

    from streamplace.cli._console import titled

    out = console()
    history = trained.history
    rows = Table("tuples/s", "problems held out", "mean", "of optimum", box=None)
    for rate, (n, mean, share) in trained.by_rate().items():
        rows.add_row(f"{rate:g}", str(n), f"{mean:.3f}", "—" if share is None else percent(share))
    if trained.rates:
        out.print(rows)
    best = f"best after {history.best}" if history.best else "none better than the first weights"
    early = ", stopped early" if len(history.epochs) < trained.epochs else ""
    epochs = f": {counted(len(history.epochs))} in {trained.seconds:.1f} s"
    out.print(titled(trained.model, f"{epochs}, {best}{early}"))
    out.print(f"Weights: {trained.weights}")
    out.print("Beside them: history.jsonl, curve.png, tensorboard/, last.safetensors (--resume)")
