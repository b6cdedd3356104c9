"""Models that people place with, one folder each; those of papers are in `streamplace.papers`.

`model.py` registers a model and imports neither torch nor numba; weights that come with streamplace
and their model cards lie beside it.
"""
