"""Networks whose parameters are random, and the same every time."""

import torch


def seeded(module, mean, std):
    """A network with parameters that are nowhere zero; biases are drawn around a mean."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for name, parameter in module.named_parameters():
            torch.nn.init.normal_(parameter, mean if name.endswith("bias") else 0.0, std)
    return module
