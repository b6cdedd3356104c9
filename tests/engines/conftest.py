"""Exports written to a folder."""

import pytest
from module_files import module_of

collect_ignore = ["golden"]


@pytest.fixture
def module(written):
    """Import ``placement.py`` of an export of a named deployment."""

    def load(export, deployment="shop"):
        return module_of(written(export, deployment) / "placement.py")

    return load
