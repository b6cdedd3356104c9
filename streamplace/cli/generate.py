"""``streamplace generate``: benchmark data sets, one subcommand per registered family."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._command import CommandGroup, verb
from streamplace.cli._options import FILE, GRAPHS, common
from streamplace.cli._output import counted, print_json, progress, say
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import Count, Whole
from streamplace.settings.option import HOW_LONG, option
from streamplace.settings.shared import JOBS, SEED

if TYPE_CHECKING:
    from streamplace.families.parameters import Parameters
    from streamplace.families.registry import Family
    from streamplace.io.manifests import Manifest
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem

WRITES = common(
    "File to write: .jsonl or .jsonl.gz for a data set, .json for one graph.",
    suffixes=GRAPHS,
    is_needed=True,
)
EXAMPLES = {
    "branched": "generate branched --seed 0 -o b.jsonl.gz",
    "giph": "generate giph --setting grid --problems 50 -o grid.jsonl.gz",
    "random-dag": "generate random-dag --operators 1000 --seed 1 -o dag.json",
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


class InShards(VerbSettings):
    """How many files a data set has, and what generates them."""

    shards: Count | None = option(
        "--files N", "Number of files of the data set. They are made in parallel."
    )
    jobs: Count | None = JOBS
    on: str | None = option(
        "--on RAY",
        "Compute on Ray: 'ray' starts one on this machine, 'auto' or an address names a running "
        "cluster.",
        HOW_LONG,
    )

    def check(self) -> None:
        """Refuse what is for files that are made in parallel."""
        super().check()
        self.need("shards", "jobs", "on")


class OfFamily(InShards):
    """What else a family needs than its parameters."""

    seed: Whole = SEED


@verb(
    "recipe",
    "Generate the data set that a TOML file describes.",
    "generate recipe recipe.toml -o graphs.jsonl.gz",
    settings=InShards,
)
@click.argument("file", type=FILE)
@WRITES
def recipe(file: Path, settings: InShards, as_json: bool, output: Path) -> None:
    """Generate the data set that the TOML file FILE describes, with the seed that it names."""
    from streamplace.families.dataset import read_recipe

    chosen = read_recipe(file)
    _write(chosen.family, chosen.parameters, chosen.seed, output, as_json, settings)


def _family_command(family: "Family") -> click.Command:
    from streamplace.families.parameters import options, parameters_of

    def run(settings: OfFamily, as_json: bool, output: Path, **values: Any) -> None:
        inputs = {name: value for name, value in values.items() if value is not None}
        parameters = parameters_of(family.parameters, inputs)
        _write(family.name, parameters, settings.seed, output, as_json, settings)

    run.__doc__ = family.summary
    suffix = "json" if family.parameters().n_graphs == 1 else "jsonl.gz"
    example = EXAMPLES.get(family.name, f"generate {family.name} -o {family.name}.{suffix}")
    decorated = verb(family.name, family.summary, example, settings=OfFamily)
    made = decorated(WRITES(run))
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


def _write(
    family: str,
    parameters: "Parameters",
    seed: int,
    output: Path,
    as_json: bool,
    settings: InShards,
) -> None:
    if settings.shards is not None:
        manifest, noun = _in_parallel(family, parameters, seed, output, settings), "graph"
    else:
        manifest, noun = _in_one(family, parameters, seed, output)
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


def _in_parallel(
    family: str, parameters: "Parameters", seed: int, output: Path, settings: InShards
) -> "Manifest":
    from streamplace.evaluate.parallel import parallel_map
    from streamplace.families.shards import write_shards

    made_by = partial(parallel_map, jobs=settings.jobs, on=settings.on, few=1)
    with progress(f"generating shards of {family}", settings.shards) as tick:
        return write_shards(family, parameters, seed, output, settings.shards or 1, made_by, tick)
