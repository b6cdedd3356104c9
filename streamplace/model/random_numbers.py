"""Random numbers: generators made from a seed; `core/src/random.rs` makes those of the core."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def generator(seed: int, *key: int) -> np.random.Generator:
    """Random generator of one thing, such as a graph, independent of all other generators."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def torch_generator(seed: int, device: "torch.device") -> "torch.Generator":
    """Generator of torch on a device."""
    import torch

    return torch.Generator(device).manual_seed(seed % 2**63)
