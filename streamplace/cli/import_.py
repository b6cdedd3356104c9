"""``streamplace import``: graphs from foreign formats."""

import click

from streamplace.api.data_sets import Import
from streamplace.cli._command import GroupedCommand
from streamplace.cli._verbs import command_of


class ImportCommand(GroupedCommand):
    """The command, with an option for every option of a registered reader."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Parameters of the command and options of the readers, which are loaded at this point."""
        from streamplace.io.registry import reader_options

        source, *others = super().get_params(ctx)
        options = [
            click.Option([f"--{name}"], is_flag=True, help=about)
            for name, about in reader_options().items()
        ]
        return [source, *others[:1], *options, *others[1:]]


command = command_of(
    Import,
    "import",
    "Read graphs in the format of another tool.",
    "import dream published/ -o published.jsonl.gz",
    cls=ImportCommand,
    prepared=lambda values: {"reader_options": [name for name in values if values[name]]},
)
