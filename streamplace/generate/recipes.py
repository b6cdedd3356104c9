"""Recipes: what to generate, as a TOML file that can be kept under version control."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamplace.errors import FormatError, StreamplaceError
from streamplace.generate.documents import checked
from streamplace.generate.parameters import Parameters, parameters_of
from streamplace.generate.registry import FAMILIES
from streamplace.io.files import read_toml, spot
from streamplace.model.graph import StreamGraph

_KEYS = {"family": str, "seed": int, "parameters": dict}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A family, its parameters and a seed: all that determines a data set."""

    family: str
    parameters: Parameters
    seed: int = 0

    def generate(self) -> Iterator[StreamGraph]:
        """Graphs of the recipe, one after the other."""
        return FAMILIES[self.family].generate(self.parameters, self.seed)


def read_recipe(path: Path) -> Recipe:
    """Recipe from a TOML file: ``family``, and if need be ``seed`` and ``[parameters]``."""
    tables = checked({"seed": 0, "parameters": {}, **read_toml(path)}, _KEYS, spot(path))
    try:
        kind = FAMILIES[tables["family"]].parameters
        parameters = parameters_of(kind, tables["parameters"])
    except StreamplaceError as error:
        raise FormatError(f"{spot(path)}: {error}") from None
    return Recipe(tables["family"], parameters, tables["seed"])
