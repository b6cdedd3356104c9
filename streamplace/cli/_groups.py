"""Groups of commands that suggest similar names for unknown ones."""

import click

from streamplace.cli._command import GroupedCommand
from streamplace.cli._gone import replacement
from streamplace.model.messages import quoted, suggestion


class CommandGroup(click.Group):
    """A group that suggests the most similar command for an unknown name."""

    command_class = GroupedCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names."""
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, name):
            return super().resolve_command(ctx, args)
        instead = replacement(ctx.command_path, name)
        if instead is not None:
            raise click.UsageError(f"{name} is gone: {instead}", ctx)
        hint = suggestion(name, self.list_commands(ctx))
        raise click.UsageError(f"No such command {quoted(name)}{hint}", ctx)
