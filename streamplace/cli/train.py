"""``streamplace train``: training of a model on graphs of one's own, with exact resumption."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._command import GroupedCommand
from streamplace.cli._options import AS_JSON, FILE, KEYS, spare_others
from streamplace.cli._output import counted, print_json, print_line, save_json, say, verbose
from streamplace.settings.train import TrainSettings

if TYPE_CHECKING:
    from streamplace.training.trained import Trained

WRITTEN = {
    "best.safetensors": KEYS,
    "first.safetensors": KEYS,
    "last.safetensors": KEYS,
    "history.jsonl": frozenset({"epoch"}),
    "solutions.jsonl": KEYS,
    "summary.json": frozenset({"best_epoch"}),
    "curve.png": KEYS,
}
"""Files of a training, with fields of the JSON that is in some of them."""


class TrainCommand(GroupedCommand):
    """A command whose help lists the registered models and their presets."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the models."""
        from streamplace.learn.registry import MODELS

        super().format_options(ctx, formatter)
        rows = [
            (name, f"{MODELS[name].summary} Presets: {', '.join(MODELS[name].presets)}.")
            for name in MODELS
        ]
        with formatter.section("Models"):
            formatter.write_dl(rows)


@click.command(
    "train",
    cls=TrainCommand,
    short_help="Train a model on graphs of your own.",
    epilog="Example: streamplace train dream --data b.jsonl.gz --rate 10000 --rate 20000 "
    "--out runs/dream; then: streamplace place g.json "
    "--placer dream:weights=runs/dream/best.safetensors",
    settings=TrainSettings,
)
@click.argument("model")
@click.option(
    "--data", type=FILE, required=True, help="Graphs to train on: a data set, a graph or a folder."
)
@click.option(
    "--out", type=FILE, required=True, help="Folder of the run; an existing one needs --resume."
)
@AS_JSON
@verbose
def command(model: str, data: Path, out: Path, settings: TrainSettings, as_json: bool) -> None:
    """Train MODEL on graphs or problems.

    A tenth of the graphs is held out for validation. The folder --out then holds the weights that
    place these graphs best (best.safetensors; use them with --placer MODEL:weights=FILE),
    history.jsonl, curve.png, and the last weights with all that --resume needs (last.safetensors):
    a training that was stopped or killed then continues as if it had never stopped.
    """
    from streamplace.api.training import training_requests
    from streamplace.cli._training import Display
    from streamplace.training.run import run_training
    from streamplace.training.trained import CURVES, write_curves

    typed = shlex.join(["streamplace", *click.get_current_context().obj])
    with _resumable(typed, out, settings.resume):
        requests = training_requests(settings, model, data, out, typed)
    if len(requests) > 1:
        spare_others(out / CURVES, option="--out")
    for request in requests:
        for name, fields in WRITTEN.items():
            spare_others(request.folder / name, keys=fields, option="--out")
    documents, runs = [], []
    for request in requests:
        with _resumable(typed, request.folder, settings.resume):
            trained = run_training(request, watcher=Display(model))
        runs.append(trained)
        documents.append(_report(trained, data, as_json))
    if len(runs) > 1:
        title = f"{model}, trained on {runs[0].trained_on} of {data.name}"
        write_curves([run.history for run in runs], runs[0].objective, title, out / CURVES)
        say(f"figure → {out / CURVES}")
    if as_json:
        print_json(documents if len(documents) > 1 else documents[0])
    elif len(runs) > 1:
        _over_seeds(runs)


@contextmanager
def _resumable(typed: str, out: Path, resume: bool) -> "Iterator[None]":
    """Print after Ctrl-C how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        from streamplace.learn.checkpoint import NAME, read_checkpoint

        if not (out / NAME).exists():
            say("stopped before training began")
        else:
            done = len(read_checkpoint(out).history.epochs)
            typed += "" if resume else " --resume"
            say(f"stopped; {counted(done, 'epoch')} saved in {out}/")
        say(f"continue with: {typed}")
        click.get_current_context().exit(130)


def _over_seeds(runs: "list[Trained]") -> None:
    """Print the mean over trainings, and what compares them on other graphs."""
    import numpy as np

    from streamplace.evaluate.paired import half_interval

    scores = np.array([trained.history.score for trained in runs])
    noun = "validation" if runs[0].held_out else "reward"
    mean = f"{scores.mean():.3f} ± {half_interval(scores):.3f} (95 % interval of the mean)"
    ends = f"{scores.min():.3f} to {scores.max():.3f}"
    print_line(f"{runs[0].model}, {len(runs)} seeds: {noun} {mean}, {ends}")
    placers = ",".join(f"{trained.model}:weights={trained.weights}" for trained in runs)
    print_line(f"Compare them: streamplace compare DATA --placers {shlex.quote(placers)}")


def _report(trained: "Trained", data: Path, as_json: bool) -> dict[str, Any]:
    """Compare the weights with other placers; show the result and write it beside the weights."""
    from streamplace.cli._training import as_document, show
    from streamplace.training.trained import PICTURE, answers_of, write_picture

    answers = answers_of(trained)
    document = as_document(trained, answers)
    save_json(document, trained.folder / "summary.json")
    title = f"{trained.model}, trained on {trained.trained_on} of {data.name}"
    picture = trained.folder / PICTURE
    write_picture(trained.history, trained.optima, trained.objective, title, picture, answers)
    if not as_json:
        show(trained, answers)
    return document
