"""The library: instances, solutions and certificates of bounds for ``checker/check.py``."""
