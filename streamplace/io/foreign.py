"""What readers of foreign formats share: files of a folder, checked JSON, and usual units."""

from collections.abc import Hashable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from streamplace.errors import FormatError
from streamplace.io.fields import unrepeated
from streamplace.io.files import is_folder, read_bytes, spot
from streamplace.io.parsing import first_fault, utf8

T = TypeVar("T")

FOREIGN = ConfigDict(extra="ignore")
"""Fields that we have no use for are no fault of a foreign file."""
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

INSTRUCTIONS_PER_SECOND = 2500e6
"""Of a device of which nothing is known: work that is given in seconds takes as long there."""
BYTES_PER_SECOND = 125e6
"""Of a link of which nothing is known: a transfer that is given in seconds takes as long there."""


def files_of(path: Path, suffix: str) -> Iterator[Path]:
    """Return the file itself, or the files of a folder whose names end so."""
    if not is_folder(path):
        yield path
        return
    files = sorted(path.glob(f"*{suffix}"))
    if not files:
        raise FormatError(
            f"{spot(path)}: the folder holds no {suffix} file; name the folder that does"
        )
    yield from files


def read_foreign(kind: type[T], path: Path) -> T:
    """Return the content of a JSON file that a typed dictionary describes."""
    return parse_foreign(kind, read_bytes(path), spot(path))


def parse_foreign(kind: type[T], content: bytes, where: str) -> T:
    """Return the content of a JSON text; what the dictionary does not name is passed over."""
    text = utf8(content, where)
    try:
        document: T = _adapter(cast(Hashable, kind)).validate_json(text)
    except ValidationError as error:
        raise FormatError(f"{where}: {first_fault(error)}") from None
    unrepeated(text, where)
    return document


def name_of(path: Path) -> str:
    """Name of a graph that says none: its file's, which must be Unicode."""
    return path.name.encode(errors="replace").decode().split(".")[0]


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
