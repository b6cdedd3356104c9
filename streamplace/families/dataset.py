"""Data sets: a family's graphs or problems in a file, streamed, with a manifest beside it.

A recipe, a TOML file, determines a data set: it has a family, its parameters and a seed.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from streamplace.errors import FormatError, SettingError, StreamplaceError
from streamplace.families.parameters import Parameters, parameters_of
from streamplace.families.registry import FAMILIES, graph_of
from streamplace.io.datasets import split_of
from streamplace.io.fields import STRICT
from streamplace.io.files import (
    CHUNK_BYTES,
    is_special,
    read_lines,
    read_toml,
    reading,
    spot,
)
from streamplace.io.lines import files_of
from streamplace.io.manifests import Manifest, Shard, manifest_path, write_manifest
from streamplace.io.parsing import checked
from streamplace.io.problems import write_problem, write_problems
from streamplace.io.suffixes import ONE_GRAPH
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem


@with_config(STRICT)
class RecipeToml(TypedDict):
    """File of a recipe."""

    family: str
    seed: NotRequired[Annotated[int, Field(ge=0)]]
    parameters: NotRequired[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A family, its parameters and a seed, which determine a data set."""

    family: str
    parameters: Parameters
    seed: int = 0

    def generate(self) -> Iterator[StreamGraph | Problem]:
        """Graphs or problems of the recipe, one after the other."""
        return FAMILIES[self.family].generate(self.parameters, self.seed)


def read_recipe(path: Path) -> Recipe:
    """Recipe from a TOML file: ``family``, and if need be ``seed`` and ``[parameters]``."""
    tables = checked(RecipeToml, read_toml(path), spot(path))
    try:
        kind = FAMILIES[tables["family"]].parameters
        parameters = parameters_of(kind, tables.get("parameters", {}))
    except StreamplaceError as error:
        raise FormatError(f"{spot(path)}: {error}") from None
    return Recipe(tables["family"], parameters, tables.get("seed", 0))


def write_dataset(
    family: str,
    parameters: Parameters,
    seed: int,
    path: Path,
    on_graph: Callable[[StreamGraph | Problem], None] = lambda graph: None,
) -> Manifest:
    """Generate a data set into a ``.jsonl`` or ``.jsonl.gz`` file and write its manifest beside it.

    If the name ends in ``.json``, the parameters must make a single graph. It has no manifest, so
    that a folder of such files contains only graphs. The same holds for problems. ``on_graph``
    is called with every graph as it is written.
    """
    if is_special(path):
        raise SettingError(
            f"{spot(path)}: is a pipe or a device, but a data set is read again for its "
            "checksums; name a regular file"
        )
    splits: Counter[str] = Counter()

    def watched() -> Iterator[StreamGraph | Problem]:
        for item in FAMILIES[family].generate(parameters, seed):
            yield item
            count_split(item, splits)
            on_graph(item)

    if path.name.endswith(ONE_GRAPH):
        if parameters.n_graphs != 1:
            raise SettingError(
                f"{spot(path)}: can contain only one graph, but the parameters generate "
                f"{parameters.n_graphs}; name a .jsonl or .jsonl.gz file"
            )
        for item in watched():
            write_problem(item, path)
        return manifest_of(family, parameters, seed, path, 1, splits)
    number = write_problems(watched(), path)
    manifest = manifest_of(family, parameters, seed, path, number, splits)
    write_manifest(manifest, manifest_path(path))
    return manifest


def manifest_of(
    family: str,
    parameters: Parameters,
    seed: int,
    path: Path,
    graphs: int,
    splits: Mapping[str, int],
    shards: tuple[Shard, ...] = (),
) -> Manifest:
    """Manifest of a written data set."""
    return Manifest(
        family=family,
        parameters=values_of(parameters),
        seed=seed,
        streamplace=version("streamplace"),
        graphs=graphs,
        splits=dict(sorted(splits.items())),
        packed_sha256=packed_sha256(path),
        content_sha256=content_sha256(path),
        shards=shards,
    )


def count_split(item: StreamGraph | Problem, splits: Counter[str]) -> None:
    """Count a graph in its split, if it has one."""
    if (split := split_of(graph_of(item).attributes)) is not None:
        splits[split] += 1


def values_of(parameters: Parameters) -> dict[str, int | float | str | bool]:
    """Parameters that have a value."""
    every = asdict(parameters)  # type: ignore[call-overload]
    return {name: value for name, value in every.items() if value is not None}


def packed_sha256(path: Path) -> str:
    """SHA-256 of a file without unpacking, or of all shards, one after the other."""
    digest = hashlib.sha256()
    for part in files_of(path):
        with reading(part), part.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def content_sha256(path: Path) -> str:
    """SHA-256 of the unpacked content of a data set, line by line; empty lines do not count."""
    digest = hashlib.sha256()
    for part in files_of(path):
        for _, line in read_lines(part):
            digest.update(line)
    return digest.hexdigest()
