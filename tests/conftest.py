"""Settings for all tests."""

from hypothesis import settings

# First calls may compile; the same examples every time make a failure reproducible.
settings.register_profile("streamplace", deadline=None, derandomize=True, database=None)
settings.load_profile("streamplace")
