"""Options of a command from the fields of its settings, and ``--settings``."""

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamplace.cli._options import FILE, reads
from streamplace.settings.option import OUTPUT

if TYPE_CHECKING:
    from streamplace.settings.base import VerbSettings

SIMULATED = (
    *("rate", "objective", "present", "startup", "constraints", "set", "without"),
    *("cluster", "devices", "mips", "bandwidth"),
)
"""Fields of other verbs that are options of ``simulate`` as well."""


class GroupedOption(click.Option):
    """An option with its group, and with choices of its value that may have to be loaded."""

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
        """Word for the value, or all names that there are."""
        return super().make_metavar(ctx) if self._choices is None else "|".join(self._choices())


def options_of(model: "type[VerbSettings]") -> list[click.Parameter]:
    """Options of a command for the fields of its settings, whose values the settings convert.

    ``--settings`` is one of them if some fields are keys of its file alone.
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
    """How to set a field that a command has only as a key of its file of settings, if so."""
    for field, option in model.options().items():
        if word == f"--{option.key_of(field)}":
            value = f"'{option.value}'" if option.value else "true"
            return f"put {option.key_of(field)} = {value} into a file for --settings"
    return None


def simulated(settings: "VerbSettings") -> dict[str, Any]:
    """Options with which ``simulate`` evaluates a placement that was found with these settings."""
    options, inputs = settings.options(), settings.inputs
    return {options[field].key_of(field): inputs[field] for field in SIMULATED if field in inputs}
