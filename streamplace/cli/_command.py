"""Commands and their groups, and the options of a command from the fields of its settings.

In the help, an example comes first, and options are in groups.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamplace.cli._options import FILE
from streamplace.cli._output import Output, reads
from streamplace.errors import SettingError
from streamplace.model.message_text import quoted, suggestion
from streamplace.settings.option import GROUPS, OUTPUT, WHAT

if TYPE_CHECKING:
    from streamplace.settings.base import VerbSettings

OUTPUTS = frozenset(("-o", "--out", "--json", "-v", "-h"))
"""Options in the group of output; other options without a field are in the first group."""
SIMULATED = (
    *("rate", "objective", "present", "startup", "constraints", "set", "without", "require"),
    *("cluster", "devices", "mips", "bandwidth"),
)
"""Fields of other verbs that are options of ``simulate`` as well."""


class GroupedOption(click.Option):
    """An option with its group, and with the choices of its value, which the help loads."""

    def __init__(
        self,
        *words: Any,
        group: str,
        choices: Callable[[], Iterable[str]] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(*words, **facts)
        self.group, self._choices = group, choices

    def make_metavar(self, ctx: click.Context) -> str:
        """Word for the value, or all of its choices."""
        return super().make_metavar(ctx) if self._choices is None else "|".join(self._choices())


def options_of(model: "type[VerbSettings]") -> list[click.Parameter]:
    """Options of a command for the fields of its settings; the settings convert their values.

    ``--settings`` is one of them if some fields are only keys of settings files.
    """
    options: list[click.Parameter] = []
    for field, option in model.options().items():
        if option.words:
            default = model.model_fields[field].default
            is_shown = isinstance(default, str | int | float) and default not in ("", False, inf)
            shown = f"{default:g}" if isinstance(default, float) else default
            options.append(
                GroupedOption(
                    [*option.words, field],
                    group=option.group,
                    choices=option.choices,
                    metavar=option.value or None,
                    is_flag=not option.value or None,
                    type=FILE if option.value == "FILE" else None,
                    multiple=option.is_repeatable,
                    required=option.is_needed,
                    help=option.help + (f"  [default: {shown}]" if is_shown else ""),
                )
            )
    for field, (is_file, is_repeatable, is_needed, word) in model.marked("argument").items():
        options.append(
            click.Argument(
                [field],
                type=FILE if is_file else None,
                nargs=-1 if is_repeatable else 1,
                required=is_needed,
                metavar=word or None,
            )
        )
    if keys := sorted(o.key_of(field) for field, o in model.options().items() if not o.words):
        text = f"TOML file of options and of {', '.join(keys)}."
        words = ["--settings", "settings_file"]
        options.append(GroupedOption(words, group=OUTPUT, metavar="FILE", type=FILE, help=text))
    return options


def with_settings(context: click.Context, model: "type[VerbSettings]") -> dict[str, Any]:
    """Parameters of a command, with ``settings`` in place of their fields."""
    params = dict(context.params)
    names = [name for name, option in model.options().items() if option.words]
    names += [*model.marked("argument"), *model.marked("output")]
    values = {name: params.pop(name) for name in names}
    typed = {
        name: value
        for name, value in values.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    settings = model.of_command(typed, params.pop("settings_file", None))
    for file in settings.files():
        reads(file)
    return params | {"settings": settings}


def as_key(model: "type[VerbSettings]", word: str) -> str | None:
    """How to set a field that is only a key of settings files; None for any other word."""
    for field, option in model.options().items():
        if word == f"--{option.key_of(field)}":
            value = f"'{option.value}'" if option.value else "true"
            return f"write {option.key_of(field)} = {value} into a file, and name it by --settings"
    return None


def simulated(settings: "VerbSettings") -> dict[str, Any]:
    """Options of ``simulate`` for a placement that was found with these settings."""
    options, inputs = settings.options(), settings.inputs
    return {options[field].key_of(field): inputs[field] for field in SIMULATED if field in inputs}


class GroupedCommand(click.Command):
    """A command with the options of its settings, in groups."""

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
        """Run the command with its settings, if it may write the file or folder of ``-o``."""
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
        """Find the command of the first word."""
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

    ``summary`` is its line in the list of commands; without one, the list has the first sentence of
    its help. The fields of ``settings`` are options; the function gets the argument ``settings``.
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
    """Command that refuses all words for a reason, which is also its line in the list."""

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
