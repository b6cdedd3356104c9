"""Registries that forget what a test adds to them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamplace.registry import Registry


@contextmanager
def forgetting(*registries: Registry[Any]) -> Iterator[None]:
    """Forget what is registered within the block, but for what registers itself."""
    before = [{name: registry[name] for name in registry} for registry in registries]
    try:
        yield
    finally:
        for registry, found in zip(registries, before, strict=True):
            registry._found = found
