"""GiPH from a weights file; numpy alone."""

from functools import lru_cache
from pathlib import Path

from streamplace.io.files import spot
from streamplace.io.weights import read_weights, stamped
from streamplace.learn.config import parsed
from streamplace.learn.improving.shapes import check_shapes
from streamplace.learn.models.giph.network import network_of, shapes
from streamplace.learn.models.giph.policy import FEATURES, GiphImprover
from streamplace.learn.registry import MODELS


def trained(path: Path, model: str) -> GiphImprover:
    """GiPH, or a variant, from a weights file, read once as long as the file stays what it is."""
    return _trained(model, *stamped(path))


@lru_cache(maxsize=8)
def _trained(model: str, path: Path, stamp: tuple[int, int]) -> GiphImprover:
    weights = read_weights(path, model=model, features=FEATURES)
    where = spot(path)
    config = parsed(MODELS[model].config, weights.document["config"], f"{where}: config")
    check_shapes(weights.tensors, shapes(config.form, config.edges), where)
    return GiphImprover(network_of(weights.tensors, config.form, config.steps), config)
