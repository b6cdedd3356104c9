"""streamplace decides where every operator of a stream-processing graph runs.

The public names are listed in ``__init__.pyi``.
"""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load a public name at its first use, so that importing streamplace stays instant."""
    from streamsim.lazy import load, public_names

    if name == "__all__":  # for `import *`, which needs no optional package
        return [public for public in public_names(__name__) if public != "PlacementDataset"]
    return load(__name__, name)


def __dir__() -> list[str]:
    from streamsim.lazy import public_names

    return sorted([*public_names(__name__), "__version__"])
