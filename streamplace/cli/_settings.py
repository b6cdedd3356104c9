"""Options of a command that are the fields of its settings, and ``--settings``."""

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import click

from streamplace.cli._command import GroupedOption
from streamplace.cli._options import FILE, is_given, reads, spare_inputs, with_each
from streamplace.settings.base import VerbSettings
from streamplace.settings.option import OUTPUT

SIMULATED = (
    *("rate", "objective", "present", "startup", "constraints", "scale", "set", "preset"),
    *("cluster", "devices", "mips", "bandwidth"),
)
"""Fields of other verbs that are options of ``simulate`` as well."""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def settings_of(model: type[VerbSettings]) -> Decorator:
    """Options of the fields, and ``--settings`` if some have none, passed on as ``asked``."""
    options = model.options()
    flags = {name: option for name, option in options.items() if option.flag}
    keys = sorted(
        (option.key or name).replace("_", "-")
        for name, option in options.items()
        if not option.flag
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, settings_file: Path | None = None, **values: Any) -> Any:
            texts = {name: values.pop(name) for name in flags}
            typed = {name: text for name, text in texts.items() if is_given(name)}
            asked = model.of_command(typed, settings_file)
            for file in asked.files():
                reads(file)
            if isinstance(output := values.get("output"), Path):
                spare_inputs(output)
            return function(*args, asked=asked, **values)

        from_file = click.option(
            "--settings",
            "settings_file",
            cls=GroupedOption,
            type=FILE,
            names="FILE",
            group=OUTPUT,
            help=f"TOML file of options and of {', '.join(keys)}.",
        )
        generated = [_option(model, name) for name in flags]
        added = (from_file, *reversed(generated)) if keys else reversed(generated)
        made: Any = wrapper
        made.__name__, made.__doc__ = function.__name__, function.__doc__
        made.__click_params__ = getattr(function, "__click_params__", [])
        made.settings = model  # for what is a key of a file
        result: Callable[..., Any] = with_each(made, *added)
        return result

    return decorate


def _option(model: type[VerbSettings], name: str) -> Decorator:
    """Option of a field, whose text the settings convert."""
    option, kind, usual = model.options()[name], model.kind(name), model.model_fields[name].default
    is_shown = isinstance(usual, str | int | float) and usual not in ("", False, inf)
    shown = f"{usual:g}" if isinstance(usual, float) else usual
    facts: dict[str, Any] = {"is_flag": True} if kind.form == "flag" else {}
    if kind.form == "file":
        facts["type"] = FILE
    return click.option(
        *option.words,
        name,
        cls=GroupedOption,
        group=option.group,
        names=kind.metavar,
        multiple=kind.form == "several",
        help=option.help + (f"  [default: {shown}]" if is_shown else ""),
        **facts,
    )


def as_key(context: click.Context, word: str) -> str | None:
    """How to give an option that a command has only as a key of its file of settings, if so."""
    model: Any = getattr(context.command.callback, "settings", None)
    for name, option in () if model is None else model.options().items():
        key, kind = (option.key or name).replace("_", "-"), model.kind(name)
        if word == f"--{key}":
            metavar = kind.metavar if isinstance(kind.metavar, str) else kind.metavar()
            value = "true" if kind.form == "flag" else f"'{metavar}'"
            return f"put {key} = {value} into a file for --settings"
    return None


def simulated(asked: VerbSettings) -> dict[str, Any]:
    """Options with which ``simulate`` evaluates a placement that was found with these settings."""
    options = asked.options()
    return {
        (options[name].key or name): asked.given[name] for name in SIMULATED if name in asked.given
    }
