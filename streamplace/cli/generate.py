"""``streamplace generate``: benchmark data sets, one subcommand per registered family."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._options import FILE, common
from streamplace.cli._output import print_json, progress, say
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.generate.parameters import Parameters
    from streamplace.generate.registry import Family
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem

WHERE = "Where to write: .jsonl or .jsonl.gz for a data set, .json for one graph."
EXAMPLES = {
    "branched": "streamplace generate branched --seed 0 -o b.jsonl.gz",
    "giph": "streamplace generate giph --setting grid --problems 50 -o grid.jsonl.gz",
    "random-dag": "streamplace generate random-dag --operators 1000 --seed 1 -o dag.json",
}


class FamilyCommands(click.Group):
    """The families of the registry as commands, their parameters as options."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the families, and ``recipe``."""
        from streamplace.generate.registry import FAMILIES

        return [*FAMILIES, "recipe"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of a family."""
        from streamplace.generate.registry import FAMILIES

        if name == "recipe":
            return recipe
        return _family_command(FAMILIES[name]) if name in FAMILIES else None


@click.command(
    "generate",
    cls=FamilyCommands,
    epilog="Example: streamplace generate branched --seed 0 -o b.jsonl.gz",
)
def command() -> None:
    """Generate benchmark graphs or problems of a family; the same seed gives the same bytes."""


@click.command(
    "recipe", epilog="Example: streamplace generate recipe datasets/branched.toml -o b.jsonl.gz"
)
@click.argument("file", type=FILE)
@common(WHERE)
def recipe(file: Path, as_json: bool, seed: int, output: Path | None) -> None:
    """Generate what the TOML file FILE prescribes (its seed counts, not --seed)."""
    from streamplace.generate.recipes import read_recipe

    chosen = read_recipe(file)
    _write(chosen.family, chosen.parameters, chosen.seed, output, as_json)


def _family_command(family: "Family") -> click.Command:
    from streamplace.generate.parameters import options, parameters_of

    def run(as_json: bool, seed: int, output: Path | None, **values: Any) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        _write(family.name, parameters_of(family.parameters, given), seed, output, as_json)

    made = click.command(
        family.name,
        help=family.summary,
        epilog=f"Example: {EXAMPLES.get(family.name) or _example(family)}",
    )(common(WHERE)(run))
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
    family: str, parameters: "Parameters", seed: int, output: Path | None, as_json: bool
) -> None:
    from streamplace.generate.dataset import write_dataset
    from streamplace.model.problem import Problem

    if output is None:
        raise SettingError("where should the graphs go? Give -o FILE.jsonl.gz or -o FILE.json")
    noun = "graph"

    def on_graph(one: "StreamGraph | Problem") -> None:
        nonlocal noun
        noun = "problem" if isinstance(one, Problem) else "graph"
        tick()

    with progress(f"generating {family}", parameters.n_graphs) as tick:
        manifest = write_dataset(family, parameters, seed, output, on_graph)
    if as_json:
        print_json({**asdict(manifest), "output": str(output)})
        return
    splits = ", ".join(f"{count} {name}" for name, count in manifest.splits.items())
    count = f"{manifest.graphs} {noun}{'s' if manifest.graphs != 1 else ''}"
    say(f"{count}{f' ({splits})' if splits else ''} → {output}")
    say(f"content SHA-256 {manifest.content_sha256}")
