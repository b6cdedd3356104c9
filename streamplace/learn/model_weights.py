"""Weights of models, shipped with streamplace or in files, read again only if they change.

Needs no torch.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from numpy.typing import NDArray

from streamplace.errors import FormatError, SettingError
from streamplace.io.files import spot
from streamplace.io.weights import SUFFIX, Weights, read_weights, stamped
from streamplace.learn.config import C, validated
from streamplace.model.message_text import quoted

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

MODEL_FOLDERS = (Path(__file__).parent / "models", Path(__file__).parents[1] / "papers")
"""Folders whose sub-folders hold the weights that come with streamplace."""
REMEDY = "fetch or make it again"


def shipped(name: str) -> Path:
    """File of the weights that come with streamplace for a model."""
    files = (path for folder in MODEL_FOLDERS for path in folder.glob(f"*/*{SUFFIX}"))
    path = next((path for path in files if path.name == f"{name}{SUFFIX}"), None)
    if path is None:
        raise SettingError(
            f"no weights of {quoted(name)} come with streamplace; name a file of weights, which "
            f"streamplace train {name} writes"
        )
    return path


def loaded(read: Callable[[Path, *Arguments], T]) -> Callable[[Path, *Arguments], T]:
    """Let a function read a file again only if it changes; its other arguments are hashable."""

    @wraps(read)
    def loading(path: Path, *arguments: *Arguments) -> T:
        result: T = _loaded(read, arguments, *stamped(path))
        return result

    return loading


@lru_cache(maxsize=32)
def _loaded(
    read: Callable[..., Any], arguments: tuple[object, ...], path: Path, stamp: tuple[int, int]
) -> Any:
    return read(path, *arguments)


def read_model(
    path: Path, model: str, config: type[C], features: Sequence[str] | None = None
) -> tuple[Weights, C, str]:
    """Weights of a model, trained on these features; its options; how errors name the file."""
    weights, where = read_weights(path, model=model, features=features), spot(path)
    return weights, validated(config, weights.document["config"], f"{where}: config"), where


class LinearMap(NamedTuple):
    """Size of a linear map; networks are declared as maps by name, in the order of their draws."""

    out: int
    inputs: int
    bias: bool = True


def check_maps(
    tensors: Mapping[str, NDArray[Any]], maps: Mapping[str, LinearMap], where: str
) -> None:
    """Raise FormatError unless these are the weights [out, in] and biases [out] of these maps."""
    shapes: dict[str, tuple[int, ...]] = {f"{n}.weight": (m.out, m.inputs) for n, m in maps.items()}
    shapes |= {f"{n}.bias": (m.out,) for n, m in maps.items() if m.bias}
    check_shapes(tensors, shapes, where)


def check_shapes(
    tensors: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, tuple[int, ...]],
    where: str,
    remedy: str = REMEDY,
) -> None:
    """Raise FormatError unless tensors have these names and shapes; ``where`` names the file."""
    for name in sorted({*shapes, *tensors}):
        if name not in shapes or name not in tensors:
            fault = "lacks" if name in shapes else "holds an unknown"
            raise FormatError(f"{where}: {fault} parameter {quoted(name)}; {remedy}")
        if tensors[name].shape != shapes[name]:
            raise FormatError(
                f"{where}: parameter {quoted(name)} is {tensors[name].shape}, not {shapes[name]}; "
                f"{remedy}"
            )
