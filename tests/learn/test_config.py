"""Options of models, and what is said where they do not suffice."""

import pytest
from problems import chain

import streamplace
from streamplace.errors import SettingError
from streamplace.learn.registry import MODELS
from streamplace.model import Cluster


@pytest.mark.parametrize(
    ("name", "most"), [("dream", 64), ("hdp", 256), ("hsdag", 256), ("placeto", 256)]
)
def test_a_training_is_only_advised_where_its_options_would_be_accepted(
    name: str, most: int
) -> None:
    """Other placers support any number of devices."""
    assert MODELS[name].config.model_validate({"devices": most})
    for devices in (most, most + 1):
        with pytest.raises(SettingError, match="use the placer pilot") as refused:
            streamplace.place(chain(2), Cluster.uniform(devices), placer=name)
        assert (f"'devices = {devices}'" in str(refused.value)) == (devices == most)
