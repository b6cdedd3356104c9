"""``streamplace generate``: benchmark data sets, one subcommand per registered family."""

from typing import TYPE_CHECKING, Any

import click

from streamplace.api.data_sets import Generate, GenerateRecipe
from streamplace.cli._command import CommandGroup
from streamplace.cli._verbs import command_of

if TYPE_CHECKING:
    from streamplace.families.registry import Family

EXAMPLES = {
    "branched": "generate branched --seed 0 -o b.jsonl.gz",
    "giph": "generate giph --setting grid --problems 50 -o grid.jsonl.gz",
    "random-dag": "generate random-dag --operators 1000 --seed 1 -o dag.json",
}
RECIPE = command_of(
    GenerateRecipe,
    "recipe",
    "Generate the data set that a TOML file describes.",
    "generate recipe recipe.toml -o graphs.jsonl.gz",
)


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
            return RECIPE
        return _family_command(FAMILIES[name]) if name in FAMILIES else None


@click.command(
    "generate",
    cls=FamilyCommands,
    short_help="Generate benchmark graphs or problems.",
    epilog="Example: streamplace generate branched --seed 0 -o b.jsonl.gz",
)
def command() -> None:
    """Generate benchmark graphs or problems of a family. Equal seeds give equal bytes."""


def _family_command(family: "Family") -> click.Command:
    from streamplace.families.parameters import options

    def with_family(values: dict[str, Any]) -> dict[str, Any]:
        typed = {name: value for name, value in values.items() if value is not None}
        return {"family": family.name, "parameters": typed}

    suffix = "json" if family.parameters().n_graphs == 1 else "jsonl.gz"
    example = EXAMPLES.get(family.name, f"generate {family.name} -o {family.name}.{suffix}")
    made = command_of(Generate, family.name, family.summary, example, prepared=with_family)
    made.help = family.summary
    for parameter in options(family.parameters):
        flags = [f"--{parameter.name.replace('_', '-')}", parameter.name]
        shown = parameter.default is not None
        text = parameter.help[0].upper() + parameter.help[1:] + "."
        if parameter.type is bool:
            flags[0] += "/--no-" + parameter.name.replace("_", "-")
        made.params.append(
            click.Option(
                flags, type=parameter.type, default=parameter.default, show_default=shown, help=text
            )
        )
    return made
