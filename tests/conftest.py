"""Settings for all tests."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

# First calls may compile; the same examples every time make a failure reproducible.
settings.register_profile("streamplace", deadline=None, derandomize=True, database=None)
settings.load_profile("streamplace")


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Optima that a user has proven are none of the tests' business, nor the other way round."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
