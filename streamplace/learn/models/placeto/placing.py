"""Placeto from a weights file; numpy alone."""

from functools import lru_cache
from pathlib import Path

from streamplace.io.files import spot
from streamplace.io.weights import read_weights, stamped
from streamplace.learn.config import parsed
from streamplace.learn.improving.shapes import check_shapes
from streamplace.learn.models.placeto.network import network_of, shapes
from streamplace.learn.models.placeto.options import PlacetoConfig
from streamplace.learn.models.placeto.policy import FEATURES, PlacetoImprover
from streamplace.learn.models.placeto.walk import N_OPERATOR


def trained(path: Path) -> PlacetoImprover:
    """Placeto from a weights file, read once as long as the file stays what it is."""
    return _trained(*stamped(path))


@lru_cache(maxsize=8)
def _trained(path: Path, stamp: tuple[int, int]) -> PlacetoImprover:
    weights = read_weights(path, model="placeto", features=FEATURES)
    where = spot(path)
    config = parsed(PlacetoConfig, weights.document["config"], f"{where}: config")
    wanted = shapes(N_OPERATOR + config.devices, config.devices)
    check_shapes(weights.tensors, wanted, where)
    return PlacetoImprover(network_of(weights.tensors), config)
