"""Registries that forget what a test adds to them."""

from contextlib import contextmanager


@contextmanager
def forgetting(*registries):
    """Forget what is registered within the block, but for what registers itself."""
    before = [{name: registry[name] for name in registry} for registry in registries]
    try:
        yield
    finally:
        for registry, found in zip(registries, before, strict=True):
            registry._registered = found
