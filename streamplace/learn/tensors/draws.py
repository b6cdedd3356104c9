"""Draws by a counter: a number depends on its key and its indices alone.

So it does not depend on the batch or the padding that it is drawn in, as those of a generator with
a state do.
"""

import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FACTORS = 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64
INDEX_BITS = 20
"""Bits of an index: three of them fit into a word."""


def mixed(words: Tensor) -> Tensor:
    """Scramble int64 words; the finalizer of splitmix64.

    The k-th number of splitmix64 from a seed is ``mixed(seed + k · GOLDEN)``:

    >>> hex(mixed(torch.tensor(GOLDEN)).item() % 2**64)
    '0xe220a8397b1dcdaf'
    """
    words = (words ^ _right(words, 30)) * _FACTORS[0]
    words = (words ^ _right(words, 27)) * _FACTORS[1]
    return words ^ _right(words, 31)


def child(keys: Tensor, number: Tensor) -> Tensor:
    """Keys of things with these numbers."""
    return mixed(keys ^ mixed(number + GOLDEN))


def children(keys: Tensor, count: int) -> tuple[Tensor, ...]:
    """So many further keys in place of each, for as many purposes."""
    numbers = torch.arange(count)
    return child(keys, numbers.view(-1, *(1,) * keys.ndim)).unbind()


def uniform(keys: Tensor, *sizes: int) -> Tensor:
    """Numbers [G, *sizes] between 0 and 1, both excluded, from keys [G]; single precision."""
    counter = torch.ones((), dtype=torch.int64)
    for size in sizes:
        indices = torch.arange(size)
        counter = (counter[..., None] << INDEX_BITS) + indices
    words = mixed(keys.view(-1, *(1,) * len(sizes)) + counter * GOLDEN)
    return _right(words, 41).float().add_(0.5).mul_(2.0**-23)


def gumbel(keys: Tensor, *sizes: int) -> Tensor:
    """Gumbel noise [G, *sizes]: the largest of log p plus noise is a draw from p."""
    return uniform(keys, *sizes).log_().neg_().log_().neg_()


def below(uniforms: Tensor, count: Tensor) -> Tensor:
    """Whole numbers from 0 to less than the count."""
    return torch.minimum((uniforms * count).long(), count - 1)


def _right(words: Tensor, bits: int) -> Tensor:
    """Shift to the right, zeros in front."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)
