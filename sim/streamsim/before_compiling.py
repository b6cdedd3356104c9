"""Preparation of a program before it compiles its first kernel, such as compiling many in parallel.

This file imports nothing, so that a program can name its function before it knows whether it needs
any kernel.
"""

from collections.abc import Callable

_prepare: list[Callable[[], None]] = []


def before_compiling(prepare: Callable[[], None]) -> None:
    """Have a function called before this process compiles anything; the last one given counts."""
    _prepare[:] = [prepare]


def prepare() -> None:
    """Call the function, if there is one and it was not called before."""
    while _prepare:
        _prepare.pop()()
