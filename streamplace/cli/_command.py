"""Commands and their groups: an example first in the help, options in groups, and none twice."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._options import Output
from streamplace.cli._settings import options_of, with_settings
from streamplace.errors import SettingError
from streamplace.model.message_text import quoted, suggestion
from streamplace.settings.option import GROUPS, OUTPUT, WHAT

if TYPE_CHECKING:
    from streamplace.settings.base import VerbSettings

OUTPUTS = frozenset(("-o", "--out", "--json", "-v", "-h"))
"""Options of output; others that are not fields of settings say what is done."""


class GroupedCommand(click.Command):
    """A command with the options of its settings, in groups, of which none is repeated."""

    def __init__(
        self, *arguments: Any, settings: "type[VerbSettings] | None" = None, **facts: Any
    ) -> None:
        super().__init__(*arguments, **facts)
        self.settings = settings
        if settings is not None:
            self.params = [*options_of(settings), *self.params]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage, the example, the text and the options."""
        self.format_usage(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group."""
        rows: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                group = OUTPUT if param.opts[0] in OUTPUTS else WHAT
                rows[getattr(param, "group", group)].append(record)
        for group, records in rows.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records, col_max=24)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; raise SettingError for an option that is given twice."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            for param, times in Counter(order).items():
                if isinstance(param, click.Option) and not param.multiple and times > 1:
                    often = "twice" if times == 2 else f"{times} times"
                    raise SettingError(f"{param.opts[0]} is given {often}; drop one")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with its settings, if it may write to what ``-o`` names."""
        outputs = [param for param in self.params if isinstance(param, Output)]
        paths = [ctx.params.get(param.name or "") for param in outputs]
        if self.settings is not None:
            ctx.params = with_settings(ctx, self.settings)
        for param, path in zip(outputs, paths, strict=True):
            param.check(path)
        return super().invoke(ctx)


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
        hint = suggestion(name, self.list_commands(ctx))
        raise click.UsageError(f"No such command {quoted(name)}{hint}", ctx)


def verb(
    name: str,
    summary: str,
    example: str,
    *,
    settings: "type[VerbSettings] | None" = None,
    group: click.Group | None = None,
    cls: type[GroupedCommand] = GroupedCommand,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command, of a group if there is one.

    ``summary`` stands in the list of commands; empty for the first sentence of its help. The fields
    of ``settings`` are options, and the function receives them as its argument ``settings``.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        command = click.command(
            name,
            cls=cls,
            short_help=summary or None,
            epilog=f"Example: streamplace {example}",
            settings=settings,
        )(function)
        if group is not None:
            group.add_command(command)
        return command

    return made


def refusal(name: str, reason: str) -> click.Command:
    """Command that refuses all words for a reason, which also stands in the list of commands."""

    def refuse(words: tuple[str, ...]) -> None:
        raise SettingError(reason)

    return click.Command(
        name,
        {"ignore_unknown_options": True},
        refuse,
        [click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        short_help=reason,
        add_help_option=False,
    )
