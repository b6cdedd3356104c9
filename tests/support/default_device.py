"""A mode of torch in which no tensor is made on the default device."""

import torch
from torch.overrides import TorchFunctionMode

FACTORIES = {
    getattr(torch, name)
    for name in ("zeros", "ones", "full", "empty", "eye", "arange", "tensor", "rand", "randint")
}


class NoDefaultDevice(TorchFunctionMode):
    """Refuses tensors that are made on the default device."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        assert function not in FACTORIES or "device" in (kwargs or {}), function
        return function(*args, **(kwargs or {}))
