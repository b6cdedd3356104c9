"""Modules that are files outside every package."""

import importlib.util


def module_of(file):
    """Run a file as a module of its name, which no other module sees."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
