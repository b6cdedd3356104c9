"""Parameters of a module as arrays, and back."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from streamplace.errors import FormatError
from streamplace.learn.model_weights import LinearMap, check_shapes
from streamplace.model.arrays import Array, Arrays
from streamplace.model.message_text import quoted

REMEDY = "name weights that were trained with the same options of the model"


class LinearMaps(nn.Module):
    """Linear maps by name, nested by the dots in it."""

    def __init__(self, maps: Mapping[str, LinearMap]) -> None:
        super().__init__()
        for name, size in maps.items():
            *path, last = name.split(".")
            module: nn.Module = self
            for part in path:
                if part not in dict(module.named_children()):
                    module.add_module(part, nn.Module())
                module = module.get_submodule(part)
            module.add_module(last, nn.Linear(size.inputs, size.out, bias=size.bias))

    def linear(self, name: str) -> nn.Linear:
        """Map of a name."""
        return cast(nn.Linear, self.get_submodule(name))


def array_of(tensor: Tensor) -> Array:
    """Copy of a tensor's values."""
    array: Array = tensor.detach().cpu().numpy().copy()
    return array


def arrays_of(module: torch.nn.Module) -> Arrays:
    """Parameters and buffers of a module, by name."""
    return {name: array_of(tensor) for name, tensor in module.state_dict().items()}


def put_arrays(module: torch.nn.Module, arrays: Mapping[str, Array], where: str) -> None:
    """Give a module these parameters and buffers; ``where`` names their source."""
    check_arrays(module, arrays, where)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


def check_arrays(module: torch.nn.Module, arrays: Mapping[str, Array], where: str) -> None:
    """Raise FormatError unless these are the parameters and buffers of a module."""
    parameters = module.state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in parameters.items()}
    check_shapes(arrays, shapes, where, REMEDY)
    for name, array in arrays.items():
        if str(parameters[name].dtype) != f"torch.{array.dtype}":
            raise FormatError(
                f"{where}: parameter {quoted(name)} is of type {array.dtype}; {REMEDY}"
            )


def normal(rows: int, columns: int) -> torch.nn.Parameter:
    """Parameter of normal draws, divided by the root of the columns.

    A module without memory needs no draws. On the meta device, torch would compute them in Python
    code that loads its compiler, which takes seconds in every process.
    """
    if torch.get_default_device().type == "meta":
        return torch.nn.Parameter(torch.empty(rows, columns))
    return torch.nn.Parameter(torch.randn(rows, columns) / columns**0.5)


def lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """State and cell of an LSTM from the sum of all inputs of its gates [..., 4W]."""
    i, f, o, g = gates.chunk(4, dim=-1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def fill(module: torch.nn.Module, arrays: Mapping[str, Array], where: str) -> None:
    """Give a module that was built without memory its parameters, for placing on the CPU."""
    check_arrays(module, arrays, where)
    values = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        values[name] = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)
    module.load_state_dict(values, assign=True)
    module.eval()
