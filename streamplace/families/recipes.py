"""Recipes: a family, its parameters and a seed as a TOML file, for version control."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from streamplace.errors import FormatError, StreamplaceError
from streamplace.families.parameters import Parameters, parameters_of
from streamplace.families.registry import FAMILIES
from streamplace.io.field_types import STRICT
from streamplace.io.files import read_toml, spot
from streamplace.io.parsing import checked
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem


@with_config(STRICT)
class RecipeToml(TypedDict):
    """A recipe as it stands in its file."""

    family: str
    seed: NotRequired[Annotated[int, Field(ge=0)]]
    parameters: NotRequired[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A family, its parameters and a seed: all that determines a data set."""

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
