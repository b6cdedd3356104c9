"""Models that people place with, one folder each; reproduced ones are in `streamplace.papers`.

`model.py` registers a model and does not import torch; weights that come with streamplace
and their model cards lie beside it.
"""
