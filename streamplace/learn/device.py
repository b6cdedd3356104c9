"""The device that torch computes on."""

import torch
from torch import nn

from streamplace.errors import SettingError
from streamplace.model.message_text import quoted


def named_device(name: str) -> torch.device:
    """Device of a name, such as ``cuda:1``; ``auto`` takes a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise SettingError(
            f"torch has no device {quoted(name)} here; name one that it has, such as cpu, or auto"
        ) from None
    if device.type == "meta":
        raise SettingError("the device meta computes nothing; name another, such as cpu")
    if device.type == "mps":
        raise SettingError("mps lacks double precision, which throughput needs; use cpu or cuda")
    return device


def device_of(module: nn.Module) -> torch.device:
    """Device that the parameters of a module are on."""
    return next(module.parameters()).device


def device_words(device: torch.device) -> str:
    """Name of a device for people; a GPU's is its model."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether an error of torch says that memory of a device is full."""
    messages = "out of memory", "not enough memory", "DefaultCPUAllocator"
    return any(message in str(error) for message in messages)
