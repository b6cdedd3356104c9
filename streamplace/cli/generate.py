"""``streamplace generate``: benchmark data sets, one subcommand per registered family."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamplace.cli._command import GroupedCommand
from streamplace.cli._groups import CommandGroup
from streamplace.cli._options import FILE, common, seeded, with_options
from streamplace.cli._output import counted, print_json, progress, say
from streamplace.cli._sweeps import spread
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.families.manifest import Manifest
    from streamplace.families.parameters import Parameters
    from streamplace.families.registry import Family
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem

F = TypeVar("F", bound=Callable[..., Any])
WHERE = "File to write: .jsonl or .jsonl.gz for a data set, .json for one graph."
EXAMPLES = {
    "branched": "streamplace generate branched --seed 0 -o b.jsonl.gz",
    "giph": "streamplace generate giph --setting grid --problems 50 -o grid.jsonl.gz",
    "random-dag": "streamplace generate random-dag --operators 1000 --seed 1 -o dag.json",
}


class FamilyCommands(CommandGroup):
    """Registered families as commands, with their parameters as options."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the families, and ``recipe``."""
        from streamplace.families.registry import FAMILIES

        return [*FAMILIES, "recipe"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of a family."""
        from streamplace.families.registry import FAMILIES

        if name == "recipe":
            return recipe
        return _family_command(FAMILIES[name]) if name in FAMILIES else None


@click.command(
    "generate",
    cls=FamilyCommands,
    short_help="Generate benchmark graphs or problems.",
    epilog="Example: streamplace generate branched --seed 0 -o b.jsonl.gz",
)
def command() -> None:
    """Generate benchmark graphs or problems of a family. Equal seeds give equal bytes."""


@dataclass(frozen=True, slots=True)
class _Spread:
    """Number of shards of a data set, and the processes that generate them."""

    shards: int | None
    jobs: int | None
    on: str | None


def _in_shards(function: F) -> F:
    """``--files``, ``--jobs`` and ``--on``, passed on as one `_Spread`."""

    def wrapper(*args: Any, **options: Any) -> Any:
        by = _Spread(*(options.pop(name) for name in ("files", "jobs", "on")))
        if by.shards is None and (by.jobs or by.on):
            raise SettingError(
                "--jobs and --on generate files in parallel; add --files, or drop them"
            )
        return function(*args, by=by, **options)

    shards = click.option(
        "--files",
        type=click.IntRange(1),
        help="Number of files of the data set. They are made in parallel.",
    )
    return with_options(wrapper, function, shards, spread)


@click.command(
    "recipe",
    cls=GroupedCommand,
    short_help="Generate the data set that a TOML file describes.",
    epilog="Example: streamplace generate recipe recipe.toml -o graphs.jsonl.gz",
)
@click.argument("file", type=FILE)
@_in_shards
@common(WHERE)
def recipe(file: Path, as_json: bool, output: Path | None, by: _Spread) -> None:
    """Generate the data set that the TOML file FILE describes, with the seed that it names."""
    from streamplace.families.dataset import read_recipe

    chosen = read_recipe(file)
    _write(chosen.family, chosen.parameters, chosen.seed, output, as_json, by)


def _family_command(family: "Family") -> click.Command:
    from streamplace.families.parameters import options, parameters_of

    def run(as_json: bool, seed: int, output: Path | None, by: _Spread, **values: Any) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        _write(family.name, parameters_of(family.parameters, given), seed, output, as_json, by)

    made = click.command(
        family.name,
        cls=GroupedCommand,
        help=family.summary,
        short_help=family.summary,
        epilog=f"Example: {EXAMPLES.get(family.name) or _example(family)}",
    )(_in_shards(seeded(WHERE)(run)))
    for option in options(family.parameters):
        flags = [f"--{option.name.replace('_', '-')}", option.name]
        shown = option.default is not None
        text = option.help[0].upper() + option.help[1:] + "."
        if option.type is bool:
            flags[0] += "/--no-" + option.name.replace("_", "-")
        made.params.append(
            click.Option(
                flags, type=option.type, default=option.default, show_default=shown, help=text
            )
        )
    return made


def _example(family: "Family") -> str:
    suffix = "json" if family.parameters().n_graphs == 1 else "jsonl.gz"
    return f"streamplace generate {family.name} -o {family.name}.{suffix}"


def _write(
    family: str,
    parameters: "Parameters",
    seed: int,
    output: Path | None,
    as_json: bool,
    by: _Spread,
) -> None:
    if output is None:
        raise SettingError("the output file is missing; add -o FILE.jsonl.gz or -o FILE.json")
    if by.shards is None:
        manifest, noun = _in_one(family, parameters, seed, output)
    else:
        manifest, noun = _spread_over(by, family, parameters, seed, output), "graph"
    if as_json:
        print_json({**asdict(manifest), "output": str(output)})
        return
    splits = ", ".join(f"{count} {name}" for name, count in manifest.splits.items())
    count = counted(manifest.graphs, noun)
    shards = f" in {len(manifest.shards)} shards" if manifest.shards else ""
    say(f"{count}{f' ({splits})' if splits else ''} → {output}{shards}")
    say(f"content SHA-256 {manifest.content_sha256}")


def _in_one(
    family: str, parameters: "Parameters", seed: int, output: Path
) -> "tuple[Manifest, str]":
    """Manifest of the written file, and the noun for its content."""
    from streamplace.families.dataset import write_dataset
    from streamplace.model.problem import Problem

    noun = "graph"

    def on_graph(item: "StreamGraph | Problem") -> None:
        nonlocal noun
        noun = "problem" if isinstance(item, Problem) else "graph"
        tick()

    with progress(f"generating {family}", parameters.n_graphs) as tick:
        return write_dataset(family, parameters, seed, output, on_graph), noun


def _spread_over(
    by: _Spread, family: str, parameters: "Parameters", seed: int, output: Path
) -> "Manifest":
    from streamplace.evaluate.parallel import parallel_map
    from streamplace.families.shards import write_shards

    made_by = partial(parallel_map, jobs=by.jobs, on=by.on, few=1)
    with progress(f"generating shards of {family}", by.shards) as tick:
        return write_shards(family, parameters, seed, output, by.shards or 1, made_by, tick)
