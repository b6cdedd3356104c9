"""Models that can be trained: one folder for each, or for those of one paper.

`model.py` registers a model and imports neither torch nor numba; weights that come with streamplace
and their model cards lie beside it.
"""
