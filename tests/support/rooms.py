"""Marks of tests that need an optional room, in files of tests that do not."""

from importlib.util import find_spec

import pytest

NO_PAPERS = find_spec("streamplace.papers") is None
needs_papers = pytest.mark.skipif(NO_PAPERS, reason="needs streamplace.papers")
