"""``streamplace train``: training of a model on graphs of the user, with exact resumption."""

import shlex

import click

from streamplace.api.training import Train
from streamplace.cli._command import GroupedCommand
from streamplace.cli._verbs import command_of


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


command = command_of(
    Train,
    "train",
    "Train a model on graphs of your own.",
    "train dream --data b.jsonl.gz --rate 10000 --rate 20000 --out runs/dream; then: streamplace "
    "place g.json --placer dream:weights=runs/dream/best.safetensors",
    cls=TrainCommand,
    prepared=lambda _: {"command": shlex.join(["streamplace", *click.get_current_context().obj])},
)
