"""Whether a weights file has the parameters of a network, checked without torch."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.model.messages import quoted


def check_shapes(
    tensors: Mapping[str, NDArray[Any]], wanted: Mapping[str, tuple[int, ...]], where: str
) -> None:
    """Raise FormatError unless these are the parameters wanted; ``where`` stands in the error."""
    for name in sorted({*wanted, *tensors}):
        if name not in wanted or name not in tensors:
            fault = "lacks" if name in wanted else "holds an unknown"
            raise FormatError(f"{where}: {fault} parameter {quoted(name)}; fetch or make it again")
        if tensors[name].shape != wanted[name]:
            raise FormatError(
                f"{where}: parameter {quoted(name)} is {tensors[name].shape}, not "
                f"{wanted[name]}; fetch or make it again"
            )
